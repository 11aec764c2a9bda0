"""A tagger learns changes of rows and labels, and a kill in the middle of an update leaves the old model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from longtail import LabelTree, OneVsRest, Ridge, Tagger, TextFeatures, load
from longtail.data import Corpus, LabelDrop, LabelRename, RowChange, RowFeedback, RowRemoval, row_id
from longtail.errors import InvalidInput, ModelFormatError
from longtail.labels import LabelHierarchy
from longtail.ranking import TwoStage
from longtail.store import read_model, write_model
from longtail.tagger.kept_rows import digest_of
from tests.store.stored_states import fields_of, replace_file

WORDS = [f"word{number}" for number in range(60)]


def corpus(n_rows, seed=0, n_labels=12, named=False):
    """Texts whose labels are told by their first words."""
    rng = np.random.default_rng(seed)
    labels = [sorted(set(rng.integers(0, n_labels, 2).tolist())) for _ in range(n_rows)]
    texts = [
        " ".join([WORDS[label] for label in row] + [WORDS[n_labels + i] for i in rng.integers(0, 40, 4)])
        for row in labels
    ]
    ids = [f"row {seed} {number}" for number in range(n_rows)] if named else None
    return Corpus.from_lists(texts, [[f"label {label}" for label in row] for row in labels], row_names=ids)


def tagger(estimator=None, **options):
    return Tagger(TextFeatures(min_df=1), estimator or OneVsRest(), updatable=True, **options)


def rows_of(model):
    """The digests of the id and of the text of each row, and its labels."""
    _, Y = model.rows_.matrices()
    names = np.array(model.label_names_, dtype=object)
    table = zip(model.rows_.ids, model.rows_.text_digests, strict=True)
    return [(id.tobytes(), text.tobytes(), {*names[Y[[row]].indices]}) for row, (id, text) in enumerate(table)]


def labels_of(model, text):
    """The labels of the stored row of a text."""
    [found] = [labels for _, digest, labels in rows_of(model) if digest == digest_of(row_id(text))]
    return found


@pytest.mark.parametrize("estimator", [OneVsRest(tol=1e-5, max_sweeps=500, precision=32, prune=0.0), Ridge()])
def test_an_update_equals_a_training_with_the_same_features(estimator):
    first, more = corpus(200), corpus(60, seed=1)
    model = tagger(estimator).fit_corpus(first)
    features = model.features_
    model.update(more)
    joined = Corpus.from_lists(
        [*first.texts, *more.texts],
        [
            [each.label_names[label] for label in each.labels[[row]].indices]
            for each in (first, more)
            for row in range(each.n_rows)
        ],
        label_names=model.label_names_,
    )
    full = type(estimator)(**estimator.get_params()).fit(features.transform(joined.texts), joined.labels)
    probe = features.transform(corpus(50, seed=2).texts)
    np.testing.assert_allclose(model.estimator_.decision_function(probe), full.decision_function(probe), atol=5e-3)
    assert (model.update_.added, model.n_rows_) == (60, 260)
    np.testing.assert_array_equal(model.label_counts_, joined.label_counts)


@pytest.mark.parametrize("named", [False, True])
def test_rows_are_added_corrected_removed_and_judged(named, tmp_path):
    data = corpus(40, named=named)
    model = tagger().fit_corpus(data)
    model.save(tmp_path / "model")
    model = load(tmp_path / "model")
    ids = data.row_names or [row_id(text) for text in data.texts]
    before = labels_of(model, data.texts[3])
    model.update(
        [
            RowChange("word0 of a new kind", ("new label",), "fresh"),
            RowChange(data.texts[0], ("label 1", "label 2"), ids[0]),
            RowChange("word1 another text", ("label 1",), ids[1]),
            RowRemoval(ids[2]),
            RowFeedback(data.texts[3], rejected=(sorted(before)[0],), added=("extra",)),
            RowFeedback("word5 a text from the page", accepted=("label 5",), rejected=("label 6",)),
        ]
    )
    found = model.update_
    assert (found.added, found.changed, found.removed, found.corrections) == (2, 3, 1, 2)
    assert found.labels_added == ("extra", "new label") or found.labels_added == ("new label", "extra")
    assert labels_of(model, data.texts[0]) == {"label 1", "label 2"}
    assert labels_of(model, data.texts[3]) == before - {sorted(before)[0]} | {"extra"}
    assert labels_of(model, "word5 a text from the page") == {"label 5"}
    assert model.n_rows_ == 41
    again = tmp_path / "again"
    model.save(again)
    assert load(again).predict(["word0 kind"], 3) == model.predict(["word0 kind"], 3)
    assert load(again, verify=True).update([RowRemoval("fresh")]).n_rows_ == 40


TEXTS = ["red apples", "Red Apples", "blue sky", "grey rain"]
SOME = st.lists(st.sampled_from(["a", "b", "c"]), max_size=2, unique=True).map(tuple)
TEXT, ID = st.sampled_from(TEXTS), st.sampled_from([None, None, "5", "6", "8", row_id(TEXTS[0])])
CHANGES = st.one_of(
    st.builds(RowChange, TEXT, SOME, ID),
    st.builds(RowFeedback, TEXT, SOME, SOME, SOME, ID),
    st.builds(lambda id, text: RowRemoval(id, text=text), ID, TEXT),
)


def with_one_text_twice(named):
    texts, labels = ["red apples", "red apples", "blue sky", "kept"], [["a"], ["b"], ["c"], ["a", "b", "c"]]
    ids = ["5", "6", "7", "0"] if named else None
    return tagger(Ridge()).fit_corpus(Corpus.from_lists(texts, labels, row_names=ids))


@pytest.mark.parametrize("named", [False, True])
@settings(max_examples=15)
@given(changes=st.lists(CHANGES, min_size=2, max_size=5))
def test_changes_in_one_update_come_to_the_same_as_one_after_another(named, changes):
    together, each = with_one_text_twice(named).update(changes), with_one_text_twice(named)
    told = 0
    for change in changes:
        each.update([change])
        told += each.update_.added - each.update_.removed
    in_order = [sorted((id, text, sorted(labels)) for id, text, labels in rows_of(model)) for model in (together, each)]
    assert in_order[0] == in_order[1]
    assert together.update_.added - together.update_.removed == told == together.n_rows_ - 4


def test_a_row_is_found_by_its_id_and_by_its_text_in_one_update():
    model = with_one_text_twice(named=True)
    model.update(
        [
            RowChange("blue sky", ("new",), "7"),
            RowFeedback("blue sky", added=("x",)),
            RowChange("grey rain", ("a",), "9"),
            RowFeedback("grey rain", rejected=("a",), added=("y",)),
            RowFeedback("red apples", added=("z",)),
            RowRemoval("6"),
        ]
    )
    assert labels_of(model, "blue sky") == {"new", "x"}
    assert labels_of(model, "grey rain") == {"y"}
    assert labels_of(model, "red apples") == {"a", "z"}
    found = model.update_
    assert (found.added, found.changed, found.removed, found.corrections) == (1, 2, 1, 3)


def test_a_label_that_is_accepted_and_rejected_is_rejected():
    model = with_one_text_twice(named=True).update([RowFeedback("blue sky", ("x",), ("x",))])
    assert labels_of(model, "blue sky") == {"c"}


def test_the_last_of_three_changes_of_a_row_wins():
    model = with_one_text_twice(named=True)
    model.update(
        [RowChange("blue sky", ("a",), "7"), RowChange("blue sky", ("b",)), RowChange("blue sky", ("c",), "7")]
    )
    assert labels_of(model, "blue sky") == {"c"}


def test_feedback_on_a_text_reaches_each_row_of_it():
    model = with_one_text_twice(named=True).update([RowFeedback("red apples", added=("x",))])
    assert [sorted(labels) for _, _, labels in rows_of(model)[:2]] == [["a", "x"], ["b", "x"]]
    assert (model.update_.changed, model.update_.removed, model.n_rows_) == (2, 0, 4)


@pytest.mark.parametrize("named", [False, True])
def test_a_row_that_stays_in_its_place_is_found_by_its_new_text(named):
    model = with_one_text_twice(named)
    model.update([RowChange("Blue Sky", ("c",), "7" if named else row_id("blue sky"))])
    model.update([RowFeedback("Blue Sky", added=("x",))])
    assert model.n_rows_ == 4
    assert labels_of(model, "Blue Sky") == {"c", "x"}


@pytest.mark.parametrize("named", [False, True])
def test_what_is_learnt_again_changes_nothing_and_is_not_counted_again(named):
    data = corpus(40, named=named)
    model = tagger().fit_corpus(data)
    wrong = sorted(labels_of(model, data.texts[3]))[0]
    changes = [
        RowFeedback(data.texts[3], rejected=(wrong,), added=("extra",)),
        RowFeedback("word5 a text from the page", accepted=("label 5",), id="page" if named else None),
        RowFeedback("word6 a text without tags", rejected=("label 6",)),
    ]
    first = model.update(changes).update_
    rows = model.n_rows_
    again = model.update(changes).update_
    assert (first.added, first.changed, first.corrections) == (2, 1, 3)
    assert (again.added, again.changed, again.corrections) == (0, 0, 0)
    assert (again.history.corrections, model.n_rows_) == (3, rows)
    model.update([RowChange(data.texts[3], ("label 1",), data.row_names and data.row_names[3]), changes[0]])
    assert labels_of(model, data.texts[3]) >= {"extra"}


def test_later_changes_win_and_labels_are_renamed_merged_and_dropped_in_order():
    data = corpus(40)
    model = tagger().fit_corpus(data)
    text = "word0 word1 twice"
    model.update(
        [
            RowChange(text, ("label 0",)),
            RowChange(text, ("label 1", "old")),
            LabelRename("old", "label 2"),
            LabelRename("label 3", "third"),
            LabelDrop("label 4"),
            RowChange("word4 again", ("label 4",)),
        ],
    )
    assert labels_of(model, text) == {"label 1", "label 2"}
    assert "third" in model.label_names_
    assert "label 3" not in model.label_names_
    assert model.label_counts_[model.label_names_.index("label 4")] == 1
    assert model.update_.labels_renamed == 2
    assert len(set(model.label_names_)) == len(model.label_names_) == model.estimator_.n_labels_


def test_an_old_name_stands_for_the_new_one_until_another_label_gets_it():
    model = with_one_text_twice(named=True)
    model.update([LabelRename("a", "a"), LabelRename("c", "d"), RowChange("blue sky", ("c",), "7")])
    assert (labels_of(model, "blue sky"), model.update_.labels_renamed) == ({"d"}, 1)
    model.update([LabelRename("d", "c"), LabelRename("b", "d"), RowChange("blue sky", ("d",), "7")])
    assert model.label_names_ == ("a", "d", "c")
    assert labels_of(model, "blue sky") == {"d"}
    model.update([LabelDrop("d"), RowFeedback("blue sky", rejected=("d",), added=("c",))])
    assert labels_of(model, "blue sky") == {"c"}


def test_renames_and_drops_as_arguments_come_first():
    model = tagger().fit_corpus(corpus(40))
    model.update([RowChange("word0", ("zero",))], rename={"label 0": "zero"}, drop=["label 1"])
    assert "label 1" not in model.label_names_
    assert model.label_counts_[model.label_names_.index("zero")] > 1
    with pytest.raises(InvalidInput, match="no label 'label 0'") as caught:
        model.update(rename={"label 0": "a"})
    assert caught.value.code == "unknown_label"


def test_labels_without_rows_are_dropped():
    model = tagger().fit(["red apple", "red sky", "blue sky"], [["fruit"], ["sky"], ["sky"]])
    model.update([RowRemoval(row_id("red apple"))])
    assert tuple(model.label_names_) == ("sky",)
    assert model.update_.labels_dropped == ("fruit",)


def test_a_failed_update_leaves_the_tagger_as_it_was(monkeypatch):
    model = tagger().fit_corpus(corpus(40))
    before = model.predict(["word0 word1"], 3), model.rows_

    def fail(self, revision):
        raise RuntimeError("interrupted")

    monkeypatch.setattr(OneVsRest, "_updated", fail)
    with pytest.raises(RuntimeError):
        model.update([RowChange("word0", ("label 1",))])
    assert (model.predict(["word0 word1"], 3), model.rows_) == before


def test_two_stages_keep_their_ranker_and_learn_new_labels(tmp_path):
    data = corpus(400, n_labels=8)
    model = Tagger(TextFeatures(min_df=1), TwoStage([("tree", LabelTree(leaf_size=4))]), updatable=True)
    model.fit_corpus(data)
    ranker = model.estimator_.ranker_
    rows = [RowChange(f"word40 word41 word42 {word}", ("new label",)) for word in WORDS[20:40]]
    model.update([*rows, RowRemoval(row_id(data.texts[0]))])
    assert model.estimator_.ranker_ is ranker
    assert "new label" in {tag.label for tag in model.predict(["word40 word41 word42 word45"], 3)[0]}
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").predict(data.texts[:5]) == model.predict(data.texts[:5])


def test_what_cannot_be_updated_says_what_to_do():
    model = Tagger(TextFeatures(min_df=1), OneVsRest()).fit_corpus(corpus(40))
    with pytest.raises(InvalidInput, match="updatable=True") as caught:
        model.update(corpus(2))
    assert caught.value.code == "not_updatable"
    rows = Corpus(labels=np.eye(3), label_names=["a", "b", "c"], features=np.eye(3))
    with pytest.raises(InvalidInput, match="trained on texts") as caught:
        Tagger(estimator=Ridge(), updatable=True).fit_corpus(rows)
    assert caught.value.code == "cannot_update"


def test_rows_with_weights_are_refused_since_an_update_would_lose_them():
    rows = corpus(40)
    with pytest.raises(InvalidInput, match="without sample_weight") as caught:
        tagger().fit_corpus(replace(rows, weights=np.linspace(1, 2, 40, dtype=np.float32)))
    assert caught.value.code == "cannot_update"
    model = tagger().fit_corpus(rows)
    with pytest.raises(InvalidInput, match="without weights") as caught:
        model.update(replace(corpus(2, seed=1), weights=np.full(2, 2, np.float32)))
    assert caught.value.code == "cannot_update"


def classifier(names=("fruit", "sky"), estimator=None):
    texts = ["red apples", "green apples", "blue sky", "grey sky"]
    return tagger(estimator).fit(texts, [names[0]] * 2 + [names[1]] * 2)


@pytest.mark.parametrize("estimator", [OneVsRest(), LabelTree(random_state=0), Ridge()])
def test_a_classifier_that_is_updated_stays_one(estimator, tmp_path):
    model = classifier(estimator=estimator)
    stones = [RowChange(text, ("stone",)) for text in ("red grey", "grey red red", "grey red grey")]
    model.update([*stones, RowFeedback("grey sky", rejected=("sky",), added=("rain",))])
    model.save(tmp_path / "model")
    for each in (model, load(tmp_path / "model")):
        assert each.is_single_label_
        assert each.classes_.tolist() == ["fruit", "sky", "stone", "rain"]
        assert each.predict(["green apples", "red grey"]).tolist() == ["fruit", "stone"]
    numbers = classifier((7, 3), estimator).update([replace(each, labels=("12",)) for each in stones])
    assert numbers.predict(["green apples", "red grey"]).tolist() == [7, 12]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (RowChange("old stones", ("sky", "stone"), place="new.jsonl:2"), "^new.jsonl:2: the row .*'sky', 'stone'"),
        (RowChange("old stones", (), "s7"), "the row with the id 's7' would have no label"),
        (RowFeedback("red apples", added=("sky",)), "the row with the text 'red apples' would have the labels"),
        (LabelDrop("sky"), r"training row 2 \(of 4, from 0\) would have no label"),
    ],
)
def test_a_classifier_refuses_rows_without_a_class_or_with_several(change, message):
    model = classifier()
    with pytest.raises(InvalidInput, match=message) as caught:
        model.update([RowChange("more apples", ("fruit",)), change])
    assert caught.value.code == "not_one_class"
    assert (model.n_rows_, model.label_names_) == (4, ("fruit", "sky"))


@pytest.mark.parametrize("change", [RowChange("old stones", ("stone",)), LabelRename("7", "007")])
def test_classes_that_are_numbers_stay_numbers(change):
    model = classifier((7, 3))
    with pytest.raises(InvalidInput, match="not a whole number") as caught:
        model.update([change])
    assert caught.value.code == "bad_classes"
    assert model.classes_.tolist() == [3, 7]


def test_classes_that_are_booleans_stay_booleans():
    model = classifier((True, False))
    model.update([RowChange("blue and grey sky", ("False",))])
    assert model.classes_.tolist() == [False, True]
    with pytest.raises(InvalidInput, match="label 'no' is not True or False like the classes"):
        model.update([LabelRename("False", "no")])


def test_a_model_that_gives_one_label_goes_on_to_do_so_and_says_that_a_full_training_is_due(tmp_path):
    data = corpus(60)
    firsts = data.labels.indices[data.labels.indptr[:-1]]
    model = tagger(OneVsRest()).fit(data.texts, [[data.label_names[label]] for label in firsts])
    model.update([RowFeedback(data.texts[0], added=("another",))])
    assert not model.is_single_label_
    assert any("1 row no longer has exactly one label" in reason for reason in model.update_.due)
    model.save(tmp_path / "model")
    for each in (model, load(tmp_path / "model")):
        assert [len(tags) for tags in each.predict(data.texts)] == [1] * 60


def test_labels_cannot_be_swapped_in_one_step():
    model = tagger().fit(["red apples", "blue sky"], [["fruit"], ["sky"]])
    with pytest.raises(InvalidInput, match="as an old and as a new name"):
        model.update(rename={"fruit": "sky", "sky": "fruit"})
    assert model.label_names_ == ("fruit", "sky")


def test_changes_of_other_types_and_changes_that_leave_no_row_are_refused():
    model = tagger().fit(["red apples", "blue sky"], [["fruit"], ["sky"]])
    with pytest.raises(InvalidInput, match=r"a change is \{'text'"):
        model.update([{"text": "red", "labels": ["fruit"]}])
    with pytest.raises(InvalidInput, match="remove every row") as caught:
        model.update([RowRemoval(row_id("red apples")), RowRemoval(row_id("blue sky"))])
    assert caught.value.code == "no_rows"
    assert model.n_rows_ == 2


def test_rows_that_happen_to_have_one_label_each_may_get_more():
    model = tagger().fit(["red apples", "blue sky"], [["fruit"], ["sky"]])
    assert model.is_single_label_
    model.update([RowFeedback("red apples", accepted=("fruit",), added=("red",))])
    assert not model.is_single_label_
    assert model.update([RowFeedback("red apples", rejected=("red",))]).is_single_label_


def test_a_full_training_is_due_when_words_or_rows_have_changed():
    model = tagger().fit_corpus(corpus(200))
    model.update(corpus(20, seed=1))
    assert model.update_.due == ()
    strange = [
        RowChange(f"strange{number % 7} unheard{number % 5} words", ("label 1",), f"s{number}") for number in range(70)
    ]
    model.update(strange)
    [words] = model.update_.due
    assert "of the words of new texts are unknown" in words
    model.update(corpus(30, seed=2))
    assert any("120 rows were added" in reason for reason in model.update_.due)


def test_the_same_new_words_in_several_updates_count_once():
    model = tagger().fit_corpus(corpus(200))
    for number in range(3):
        texts = [f"strange unheard {word}" for word in WORDS[:20]]
        model.update([RowChange(text, ("label 1",), f"{number} {text}") for text in texts])
    assert model.rows_.history.new_words == 2
    assert "at least 2 new words" in " ".join(model.update_.due)


def test_rows_with_the_same_features_stay_in_their_place():
    data = corpus(60)
    model = tagger(LabelTree(leaf_size=4)).fit_corpus(data)
    model.update([RowFeedback(data.texts[5], added=("label 1",))])
    np.testing.assert_array_equal(model.rows_.ids, tagger().fit_corpus(data).rows_.ids)


def test_a_given_tree_stays_and_labels_that_replace_all_others_get_another():
    data = corpus(80)
    flat = LabelHierarchy([0, 12], [~label for label in range(12)], 12, ["all"])
    model = tagger(LabelTree(leaf_size=4, hierarchy=flat)).fit_corpus(data)
    model.update([RowFeedback(data.texts[5], added=("label 1",))])
    assert model.estimator_.hierarchies_[0].n_nodes == 1
    model.update(replace(corpus(80), label_names=[f"new {label}" for label in range(12)]))
    [tree] = model.estimator_.hierarchies_
    assert tree.n_nodes > 3
    texts = data.texts[:20]
    right = [
        {tag.label for tag in tags} <= labels_of(model, text)
        for tags, text in zip(model.predict(texts, 1), texts, strict=True)
    ]
    assert np.mean(right) > 0.8


def damaged(folder, name, change):
    fields = fields_of(folder)
    entry = fields["model"]["parts"]["rows"]["arrays"][name]["files"]["values"]
    array = np.load(folder / entry["name"])
    size = array.nbytes
    content = (folder / entry["name"]).read_bytes()
    replace_file(folder, fields, entry, content[: len(content) - size] + change(array.copy()).tobytes())


@pytest.mark.parametrize("name", ["starts", "columns", "values", "label_starts", "labels"])
def test_damaged_rows_load_but_are_never_learnt_from(tmp_path, name):
    model = tagger().fit_corpus(corpus(40))
    model.save(tmp_path / "model")
    replaced = {
        "values": lambda array: np.full_like(array, np.nan),
        "starts": lambda array: array[::-1],
        "label_starts": lambda array: array[::-1],
    }
    damaged(tmp_path / "model", name, replaced.get(name, lambda array: array - 10**6))
    found = load(tmp_path / "model")
    assert found.predict(["word0"], 2) == model.predict(["word0"], 2)
    with pytest.raises(ModelFormatError):
        found.update([RowChange("word0", ("label 1",))])


def test_rows_that_do_not_fit_the_model_are_refused(tmp_path):
    model = tagger().fit_corpus(corpus(40))
    model.save(tmp_path / "model")
    state = read_model(tmp_path / "model")
    rows = state.parts["rows"]
    for facts in ({"n_labels": 3}, {"unknown_share": 2.0}, {"rows": -1}):
        state.parts["rows"] = type(rows)(rows.kind, facts={**rows.facts, **facts}, arrays=rows.arrays)
        write_model(state, tmp_path / "bad")
        with pytest.raises(ModelFormatError):
            load(tmp_path / "bad")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_kill_in_the_middle_of_an_update_leaves_the_old_model(tmp_path):
    data = corpus(300)
    model = tagger(LabelTree(leaf_size=4)).fit_corpus(data)
    model.save(tmp_path / "model")
    expected = load(tmp_path / "model").predict(data.texts[:5])
    lines = [json.dumps({"text": text, "labels": ["label 1"]}) for text in corpus(50, seed=3).texts]
    (tmp_path / "new.jsonl").write_text("\n".join(lines))
    # The process stops when the first array of the new model is on the disk, and is killed there.
    program = (
        "import sys, time\n"
        "from longtail.store import files\n"
        "from longtail.cli.program import run\n"
        "write = files.write_file\n"
        "def stop(directory, name, blocks):\n"
        "    if name == files.MANIFEST:\n"
        "        print('writing', flush=True)\n"
        "        time.sleep(60)\n"
        "    write(directory, name, blocks)\n"
        "files.write_file = stop\n"
        "run(['update', 'model', 'new.jsonl'])\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    found = load(tmp_path / "model", verify=True)
    assert found.predict(data.texts[:5]) == expected
    found.update(tmp_path / "new.jsonl").save(tmp_path / "model")
    assert load(tmp_path / "model", verify=True).n_rows_ > 300


def test_how_many_tags_is_learned_again_with_the_ranker(monkeypatch):
    monkeypatch.setattr("longtail.ranking.two_stage._FEWEST_NEW", 100)
    learner = TwoStage([("tree", LabelTree())], rounds=20)
    model = tagger(learner).fit_corpus(corpus(200))
    before = model.decision_
    model.update(corpus(240).select(np.arange(200, 240)))
    assert model.decision_ is before
    model.update(corpus(400, seed=1))
    assert model.decision_.expected.n_rows > before.expected.n_rows
    without = Tagger(TextFeatures(min_df=1), clone(learner), updatable=True, aim=None).fit_corpus(corpus(200))
    assert without.update(corpus(400, seed=1)).decision_ is None
