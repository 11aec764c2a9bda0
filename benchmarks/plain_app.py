"""The service that people write first: FastAPI around scikit-learn's one-vs-rest, run by uvicorn.

``PLAIN_MODEL`` is the file with the pipeline and its label names. ``PLAIN_STACKED`` puts the weights of all labels into
one matrix, the obvious optimisation when a loop over thousands of classifiers is too slow.
"""

from __future__ import annotations

import os

import joblib
import numpy as np
from fastapi import FastAPI
from pydantic import BaseModel, Field

from longtail.arrays import Array

pipeline, label_names = joblib.load(os.environ["PLAIN_MODEL"])
app = FastAPI()


class TagRequest(BaseModel):
    text: str
    k: int = Field(default=5, ge=1, le=100)


class Tag(BaseModel):
    label: str
    score: float


class TagAnswer(BaseModel):
    tags: list[Tag]


if os.environ.get("PLAIN_STACKED"):
    vectorizer, classifier = pipeline[0], pipeline[-1]
    weights = np.vstack([one.coef_ for one in classifier.estimators_]).T.copy()
    intercepts = np.concatenate([np.ravel(one.intercept_) for one in classifier.estimators_])
    del pipeline, classifier

    def scores_of(text: str) -> Array:
        return np.asarray(vectorizer.transform([text]) @ weights + intercepts)[0]

else:

    def scores_of(text: str) -> Array:
        return np.asarray(pipeline.decision_function([text]))[0]


@app.post("/tag")
def tag(request: TagRequest) -> TagAnswer:
    scores = scores_of(request.text)
    best = np.argpartition(-scores, min(request.k, len(scores) - 1))[: request.k]
    best = best[np.argsort(-scores[best])]
    return TagAnswer(tags=[Tag(label=label_names[label], score=float(scores[label])) for label in best])


@app.get("/health/live")
async def live() -> dict[str, str]:
    return {"status": "ok"}
