"""omikuji: Parabel and Bonsai.

Its Python interface trains only on a file, so the file is read before the clock starts and training is called as in its
own ``train_on_data``. It normalises rows to unit length itself. It has no batch interface: a thread pool passes rows
from the arrays to its compiled ``omikuji_predict``, which is faster than ``Model.predict``. Single rows use the latter,
as its users would.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import omikuji  # type: ignore[import-not-found]
from omikuji import ffi, lib

from benchmarks.adapters.base import Adapter

BEAM = 10
BLOCK_ROWS = 256


class Omikuji(Adapter):
    """`settings` are names and values of omikuji's hyper-parameters."""

    def __init__(self, threads: int, **settings: Any) -> None:
        super().__init__(threads)
        self.hyper_param = omikuji.Model.default_hyper_param()
        for name, value in settings.items():
            setattr(self.hyper_param, name, value)

    def version(self) -> str:
        return str(omikuji.__version__)

    def read_training(self, data: Path) -> tuple[Any, Any]:
        return None, None  # the arrays would count as its memory

    def prepare(self, X: Any, Y: Any, data: Path, folder: Path) -> tuple[Any, Any]:
        self.pool = ffi.gc(lib.init_omikuji_thread_pool(self.threads), lib.free_omikuji_thread_pool)
        read = lib.load_omikuji_data_set(ffi.new("char[]", str(data / "train.txt").encode()), self.pool)
        if read == ffi.NULL:
            raise RuntimeError(f"omikuji could not read {data / 'train.txt'}")
        self.data_set = ffi.gc(read, lib.free_omikuji_data_set)
        return None, None

    def train(self, X: Any, Y: Any) -> None:
        trained = lib.train_omikuji_model(self.data_set, self.hyper_param, self.pool)
        if trained == ffi.NULL:
            raise RuntimeError("omikuji could not train")
        self.model = omikuji.Model(trained)

    def save(self, path: Path) -> None:
        path.mkdir()
        self.model.save(str(path))

    def forget(self) -> None:
        self.model = self.data_set = None

    def load(self, path: Path) -> None:
        self.model = omikuji.Model.load(str(path))
        self.model.init_prediction_thread_pool(self.threads)
        self.model.densify_weights()  # as its command-line program does by default

    def predict(self, X: Any, k: int) -> Any:
        top = np.full((X.shape[0], k), -1, dtype=np.int32)
        indices = np.ascontiguousarray(X.indices, dtype=np.uint32)
        values = np.ascontiguousarray(X.data, dtype=np.float32)
        first_index, first_value = ffi.from_buffer("uint32_t[]", indices), ffi.from_buffer("float[]", values)
        model, pool = self.model._model_ptr, self.model._thread_pool.ptr

        def predict_block(start: int) -> None:
            labels, scores = ffi.new("uint32_t[]", k), ffi.new("float[]", k)
            for row in range(start, min(start + BLOCK_ROWS, X.shape[0])):
                begin, end = int(X.indptr[row]), int(X.indptr[row + 1])
                found = lib.omikuji_predict(
                    model, BEAM, end - begin, first_index + begin, first_value + begin, k, labels, scores, pool
                )
                top[row, :found] = ffi.unpack(labels, found)

        with ThreadPoolExecutor(self.threads) as workers:
            list(workers.map(predict_block, range(0, X.shape[0], BLOCK_ROWS)))
        return top

    def single_input(self, row: Any) -> Any:
        return list(zip(row.indices.tolist(), row.data.tolist(), strict=True))

    def predict_one(self, single: Any, k: int) -> Any:
        return self.model.predict(single, beam_size=BEAM, top_k=k)
