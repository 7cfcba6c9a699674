"""The Garden World's figures, and the excess of trained models by how often a pairing was seen."""

import math
import re
from collections import Counter

import numpy as np
import pytest
import torch

from lecture04.config import UserError
from lecture04.data.garden import garden
from lecture04.data.garden.words import POSSESSIVES
from lecture04.data.types import load
from lecture04.lecture.probes import world
from lecture04.lecture.probes.common import trained
from lecture04.lecture.probes.expected import ExpectedExcess, pairings
from lecture04.lecture.probes.finished import of_config
from lecture04.lecture.probes.world import BUCKETS, CORPUS, EXCESS, EXPECTED, MEAN, NONE, SHARE, TOKENS, UNSEEN
from lecture04.training.evaluate import token_nll


@pytest.mark.slow
def test_floor(value, whole_corpus):
    assert 3.55 < value("world", whole_corpus, claim="floor") < 3.72


def test_doc_length(value, part_of_the_corpus):
    for split in ("train", "val", "test"):
        assert 24 < value("world", *part_of_the_corpus, claim="doc_length", split=split) < 27


def test_the_corpus_is_counted(value, resolved, part_of_the_corpus):
    request, _ = resolved("probe=world", *part_of_the_corpus)
    corpus, words = load(request.run, request.session.outputs), Counter()
    documents = [
        corpus.test.tokens[a + 1 : b].tolist()
        for a, b in zip(corpus.test.offsets[:-1], corpus.test.offsets[1:], strict=True)
    ]
    for document in documents:
        words.update(corpus.tokenizer.id_to_token(token) for token in document)
    lengths = sorted(map(len, documents))

    def found(quantity):
        return value("world", *part_of_the_corpus, split="test", quantity=quantity)

    assert found("documents") == 600
    assert found("predicted_tokens") == sum(lengths)
    assert found("mean_tokens") == pytest.approx(sum(lengths) / 600)
    assert found("median_tokens") == (lengths[299] + lengths[300]) / 2
    assert found("longest") == lengths[-1] <= 64
    assert found("possessives") == sum(words[word] for word in POSSESSIVES)
    assert found("true_ppl") == pytest.approx(math.exp(-corpus.test.facts["log_prob"].sum() / sum(lengths)))
    assert value("world", *part_of_the_corpus, quantity="vocabulary") == 92


def test_far_is_what_evaluation_takes_for_far(value, part_of_the_corpus):
    def far(window):
        return value("world", *part_of_the_corpus, f"eval.window={window}", split="test", quantity="far_possessives")

    assert far(4) > 90
    assert far(0) == value("world", *part_of_the_corpus, split="test", quantity="possessives")
    assert far(0) > far(4) > far(8) > 0


def test_without_runs_the_corpus_is_there_and_stderr_says_what_is_missing(resolved, tmp_path, capsys):
    few = ("data.n_train=9", "data.n_val=3", "data.n_test=3")
    table = world.world(*resolved("probe=world", *few, f"paths.outputs={tmp_path}"))
    assert set(table.part) == {CORPUS}
    assert list(world.shown(table)) == ["The corpus: 92 words"]
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"python train.py -m sweeps=norm paths.outputs={tmp_path}" in said


def test_other_data_are_refused_in_one_sentence(resolved, tiny_corpus, monkeypatch):
    monkeypatch.setattr(world, "load", lambda run, outputs: tiny_corpus)
    with pytest.raises(UserError, match=r"^data=garden: says nothing of given, which probe=world counts\.$"):
        world.world(*resolved("probe=world"))


@pytest.fixture
def overrides(swept, small_data):
    return (*small_data, f"paths.outputs={swept}")


@pytest.fixture
def parts(resolved, overrides):
    """The corpus and the standard model's runs of a small sweep."""
    request, _ = resolved("probe=world", *overrides)
    outputs = request.session.outputs
    return load(request.run, outputs), of_config(request.run, outputs)


def test_how_often_a_pairing_was_seen(parts):
    corpus, _ = parts
    training = list(zip(corpus.train.facts["given"].tolist(), corpus.train.tokens.tolist(), strict=True))
    count = Counter(pair for pair in training if pair[0] >= 0)
    expected = [
        count[given, token] if given >= 0 else -1
        for given, token in zip(corpus.test.facts["given"].tolist(), corpus.test.tokens.tolist(), strict=True)
    ]
    seen = world.times_seen(corpus.test, corpus.train, corpus.vocab_size)
    np.testing.assert_array_equal(seen, expected)
    assert 0 in expected, "so small a training split leaves pairings unseen"
    own = world.times_seen(corpus.train, corpus.train, corpus.vocab_size)
    assert (own != 0).all(), "what stands in training was seen there"


def test_buckets():
    edges = {
        NONE: (-1,),
        UNSEEN: (0,),
        "seen_1": (1, 2),
        "seen_3": (3, 10),
        "seen_11": (11, 100),
        "seen_101": (101, 9999),
    }
    for bucket, times in edges.items():
        found = world.by_times_seen(np.array([2.5, -1.0]), np.array([times[0], times[-1]]), np.ones(2))
        assert found == {name: (2, 1.5) if name == bucket else (0, 0.0) for name in (*BUCKETS, NONE)}


def test_the_buckets_hold_the_whole_excess_that_evaluation_finds(ask, overrides, parts):
    """Tokens and nats add up to what the runs' own records say, seed by seed."""
    corpus, runs = parts
    assert [run.seed for run in runs] == [0, 1]
    table = ask("world", *overrides)
    for run in runs:
        lines = table[(table.part == EXCESS) & (table.seed == run.seed)]
        wide = lines.pivot(index="pairing", columns="quantity", values="value")
        buckets = wide.drop(index="all")
        assert buckets[TOKENS].sum() == wide[TOKENS]["all"] == corpus.test.n_predicted
        assert buckets[SHARE].sum() == pytest.approx(1)
        assert (buckets[TOKENS] * buckets[MEAN]).sum() / corpus.test.n_predicted == pytest.approx(wide[MEAN]["all"])
        (path,) = (run.record.folder / "evals").glob("*.json")
        recorded = run.record.metrics(path.stem)["test/excess"]
        assert wide[MEAN]["all"] == pytest.approx(recorded, abs=1e-5)


def test_the_expected_excess_is_that_of_the_models_whole_distributions(ask, overrides, parts):
    """By hand, word for word, of the first document: the mean of log p - log q under p; nearly the realised one."""
    corpus, runs = parts
    table = ask("world", *overrides)
    lines = table[(table.part == EXPECTED) & (table.seed == runs[0].seed)]
    wide = lines.pivot(index="pairing", columns="quantity", values="value")
    buckets = wide.drop(index="all")
    assert buckets[TOKENS].sum() == pytest.approx(wide[TOKENS]["all"]) == corpus.test.n_predicted
    assert buckets[SHARE].sum() == pytest.approx(1)
    realised = table[(table.part == EXCESS) & (table.seed == runs[0].seed) & (table.pairing == "all")]
    (realised,) = realised[realised.quantity == MEAN].value
    assert wide[MEAN]["all"] == pytest.approx(realised, rel=0.25), "forty documents' chance lies between the two"

    language, model = garden.language(0), trained(runs[0])
    expected = ExpectedExcess(pairings(corpus, language))
    token_nll(model, corpus.test, corpus.layout, (expected,))
    tokens = corpus.test.tokens[: corpus.test.offsets[1]].astype(int)
    with torch.no_grad():
        log_q = torch.log_softmax(model(torch.from_numpy(tokens[:-1])[None], None, None)[0].double(), -1).numpy()
    kl = []
    for i in range(len(tokens) - 1):
        p = language.next_token_probs(tokens[1 : i + 1])
        kl.append((p[p > 0] * (np.log(p[p > 0]) - log_q[i][p > 0])).sum())
        assert kl[-1] > 0
    first = slice(0, expected.found.start_N[len(tokens)])
    assert expected.nats_M[first].sum() == pytest.approx(sum(kl), rel=1e-4)


def test_the_claim_is_about_what_was_never_seen(ask, overrides):
    claimed = ask("world", *overrides).query("claim == 'unseen_pairs'")
    assert set(claimed.pairing) == {UNSEEN}
    assert set(claimed.quantity) == {TOKENS, SHARE, MEAN}


def test_shown_has_a_row_for_every_bucket(ask, overrides):
    corpus, expected, excess = world.shown(ask("world", *overrides)).items()
    assert list(corpus[1].columns) == ["quantity", "train", "val", "test"]
    assert list(expected[1].columns) != list(excess[1].columns), "one has probability where the other has tokens"
    assert excess[0].endswith("seeds 0, 1")
    assert excess[1].pairing.tolist() == list(world.PAIRINGS.values())
    assert list(world.PAIRINGS) == [*BUCKETS, NONE, "all"]
    shares = excess[1]["share of the excess, %"].tolist()
    mean, low, high = (float(part) for part in re.fullmatch(r"(\S+) \[(\S+), (\S+)\]", shares[3]).groups())
    assert low <= mean <= high
    assert shares[-1] == ""


def test_the_sentence_without_runs_and_with_them(ask, overrides, part_of_the_corpus):
    """Where most is lost is read from the table."""
    whole = world.sentence(ask("world", *part_of_the_corpus))
    assert re.match(r"The best possible perplexity on test is 3\.\d+, the true distribution's; of the ", whole)
    trained = ask("world", *overrides)
    assert " nats a token that trained models lose to it most are lost on words " in world.sentence(trained)
    share = (trained.quantity == SHARE) & (trained.part == EXPECTED)
    trained.loc[share & (trained.pairing == NONE), "value"] = 0.9
    assert "most are lost on words without a pairing (90 %)" in world.sentence(trained)
    trained.loc[share & (trained.pairing == "seen_3"), "value"] = 0.95
    assert "most are lost on words whose pairing was seen 3-10 times (95 %)" in world.sentence(trained)


def test_a_table_goes_to_a_file_and_comes_back(ask, overrides, tmp_path):
    """Figures of the corpus have no seed, and are written as such."""
    table = ask("world", *overrides)
    text = table.to_csv(index=False)
    assert ",corpus,test,,,documents,40.0" in text
    assert f",{EXCESS},test,all,1,{TOKENS}," in text
