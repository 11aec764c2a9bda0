"""An import contract: a package is imported through its `__init__`, and its inner modules are its own business.

pyproject.toml names this class as the contract type ``facades``; `make lint` checks it.
"""

from __future__ import annotations

from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output
from importlinter.application import contract_utils

# A package of this depth is a house of its own: longtail.trees, longtail_papers.eagle.
_DEPTH = 2


class FacadeContract(Contract):
    """No module outside a package imports a module inside it; sub-packages count as façades too."""

    ignore_imports = fields.SetField(subfield=fields.ImportExpressionField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        contract_utils.remove_ignored_imports_and_report(
            graph=graph, ignore_imports=self.ignore_imports, unmatched_alerting=contract_utils.AlertLevel.ERROR
        )
        found = sorted(
            (importer, imported)
            for importer in graph.modules
            for imported in graph.find_modules_directly_imported_by(importer)
            if not graph.is_module_squashed(imported) and is_inner(graph, importer, imported)
        )
        return ContractCheck(kept=not found, metadata={"found": found})

    def render_broken_contract(self, check: Any) -> None:
        for importer, imported in check.metadata["found"]:
            output.print_error(f"{importer} imports {imported}; import from {imported.rpartition('.')[0]}")


def is_inner(graph: ImportGraph, importer: str, imported: str) -> bool:
    """Whether `imported` is a module inside a package that `importer` does not belong to."""
    home = imported.split(".")[:_DEPTH]
    return imported.count(".") >= _DEPTH and importer.split(".")[:_DEPTH] != home and not graph.find_children(imported)
