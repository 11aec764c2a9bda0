"""Time of ridge against a reference measured in the same run.

``python -m benchmarks.ridge`` needs EURLex-4K and EURLEX57K in ``$LONGTAIL_DATA``. Two comparisons of medians; the
contestants take turns:

(a) EURLex-4K: a fit, and the choice among seven alphas, against NumPy's ``eigh`` of a 5,000 x 5,000 float64 matrix.
(b) 24,000 passages of EURLEX57K with 26,000 features and 580 labels: the solver that "auto" chooses against Cholesky.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.timing import Times, interleave, verdict
from longtail import Ridge, RidgeCV, TextFeatures
from longtail.data import load_data_set
from longtail.metrics import precision_at_k
from longtail.parallel import count_cores
from longtail.text import RowScaling

CHARACTERS = 440
TRAIN_ROWS, TEST_ROWS = 24_000, 6_000
FEATURES, LABELS = 26_000, 580


def show(name: str, times: Times, remark: str = "") -> None:
    print(f"  {name:<28} {times!s:<32} {remark}".rstrip(), flush=True)


def against_eigh(repeat: int) -> None:
    train = load_data_set("eurlex-4k", "train")
    X = RowScaling(log=True).fit_transform(train.features)
    dense = np.random.default_rng(0).normal(size=(5000, 5000))
    symmetric = dense + dense.T
    seconds, returned = interleave(
        {
            "numpy eigh": lambda: np.linalg.eigh(symmetric),
            "Ridge(alpha=0.3).fit": lambda: Ridge(alpha=0.3).fit(X, train.labels),
            "RidgeCV().fit, seven alphas": lambda: RidgeCV().fit(X, train.labels),
        },
        repeat,
    )
    eigh, fit, path = (times.median for times in seconds.values())
    print(f"(a) EURLex-4K: {X.shape[0]:,} rows, {X.shape[1]:,} features, {train.n_labels:,} labels; {repeat} rounds")
    for name, times in seconds.items():
        solver = getattr(returned[name], "solver_", "")
        show(name, times, f"solver {solver}" if solver else "")
    print(f"  fit / eigh    {fit / eigh:6.2f}   at most 1: {verdict(fit <= eigh)}")
    print(f"  RidgeCV / fit {path / fit:6.2f}   at most 8: {verdict(path <= 8 * fit)}", flush=True)


def short_texts() -> tuple[Any, Any, Any, Any]:
    """Features and labels of passages from the middle of EURLEX57K's texts, training and test rows.

    The beginnings repeat legal formulas and have too few different words.
    """
    corpus = load_data_set("eurlex57k", "train").select(np.arange(TRAIN_ROWS + TEST_ROWS))
    assert corpus.texts is not None
    texts = [text[len(text) // 2 :][:CHARACTERS] for text in corpus.texts]
    features = TextFeatures(min_df=1, max_features=FEATURES)
    X = features.fit_transform(texts[:TRAIN_ROWS])
    counts = np.bincount(corpus.labels[:TRAIN_ROWS].indices, minlength=corpus.n_labels)
    frequent = np.sort(np.argsort(-counts, kind="stable")[:LABELS])
    Y = sparse.csr_array(corpus.labels[:, frequent])
    return X, Y[:TRAIN_ROWS], features.transform(texts[TRAIN_ROWS:]), Y[TRAIN_ROWS:]


def against_cholesky(repeat: int) -> None:
    X, Y, X_test, Y_test = short_texts()
    seconds, returned = interleave(
        {
            'Ridge(solver="auto").fit': lambda: Ridge(solver="auto").fit(X, Y),
            'Ridge(solver="primal").fit': lambda: Ridge(solver="primal").fit(X, Y),
        },
        repeat,
    )
    print(
        f"(b) passages of EURLEX57K's texts: {X.shape[0]:,} rows, {X.shape[1]:,} features, {Y.shape[1]} labels, "
        f"{X.nnz / X.shape[0]:.1f} non-zeros per row; {repeat} rounds"
    )
    precision = []
    for name, times in seconds.items():
        top = returned[name].predict_topk(X_test)[0]
        precision.append([100 * precision_at_k(Y_test, top, k) for k in (1, 3, 5)])
        show(name, times, f"solver {returned[name].solver_}, P@1/3/5 " + "/".join(f"{p:.2f}" for p in precision[-1]))
    auto, primal = (times.median for times in seconds.values())
    apart = float(np.ptp(precision, axis=0).max())
    print(f"  primal / auto {primal / auto:6.2f}   at least 8: {verdict(primal >= 8 * auto)}")
    print(f"  P@k apart     {apart:6.2f}   at most 0.1: {verdict(apart <= 0.1)}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", choices=("a", "b"), help="run one of the two comparisons")
    arguments.add_argument("--repeat", type=int, default=3, help="rounds of (a)")
    arguments.add_argument("--repeat-large", type=int, default=1, help="rounds of (b), about two minutes each")
    options = arguments.parse_args()
    print(f"{count_cores()} cores")
    if options.only != "b":
        against_eigh(options.repeat)
    if options.only != "a":
        against_cholesky(options.repeat_large)


if __name__ == "__main__":
    main()
