"""What a run or a folder writes: how its texts begin and end, what a prompt is, how long they are, what is judged."""

from dataclasses import replace

import pytest
import torch

from lecture04.config.errors import UserError
from lecture04.data.tokenizer import of_words
from lecture04.data.types import row_start
from lecture04.huggingface import folders
from lecture04.nn.generate import Sampling, generate
from lecture04.nn.init import build
from lecture04.training import texts
from lecture04.training.evaluate import evaluate
from lecture04.training.sample import Subject, judged, of_folder

WORDS = ("<pad>", "<bos>", "<eos>", "the", "cat", "sees", ".", *"abcdefgh")


@pytest.fixture
def subject(small):
    """`subject("posenc=learned", start=None)`: a model with a tokenizer, which nobody has trained."""

    def make(*overrides, **fields):
        run = small(*overrides)
        own = {"tokenizer": of_words(WORDS, unknown="<pad>"), "start": 1, "ends": frozenset([2])}
        return Subject(build(run), architecture=run, **(own | fields))

    return make


def test_a_prompt_stands_behind_the_first_token(subject):
    assert subject().prompt("the cat") == [1, 3, 4]
    assert subject().prompt("") == [1]
    assert subject().prompt("<bos> the") == [1, 3], "it is not said twice"
    assert subject(start=None).prompt("the cat") == [3, 4]


def test_without_a_tokenizer_a_prompt_is_ids_and_so_is_the_text(subject):
    found = subject(tokenizer=None)
    assert found.prompt(" 3 14") == [1, 3, 14]
    assert found.text([3, 14]) == "3 14"
    assert subject().text([3, 4, 2]) == "the cat <eos>"


@pytest.mark.parametrize(
    ("fields", "text", "said"),
    [
        ({}, "the dog sees", r"--prompt: dog: the tokenizer does not know this\..* Choices: \., <bos>"),
        ({}, "the cst", r"--prompt: cst: .* Did you mean cat\?"),
        ({"tokenizer": None}, "3 15", r"--prompt: 15: no token, .* Choices: ids from 0 to 14\."),
        ({"tokenizer": None}, "the", r"--prompt: the: no token, .* Choices: ids from 0 to 14\."),
        ({"tokenizer": None, "start": None}, " ", r"--prompt: missing, .* Choices: ids from 0 to 14\."),
        ({"start": None}, "", r"--prompt: missing, .* Choices: text\."),
        (
            {"tokenizer": of_words((*WORDS, "more"), unknown="<pad>")},
            "more",
            r"--prompt: more: is token 15, .* 15 tokens\. Choices: text of ids from 0 to 14",
        ),
    ],
)
def test_a_prompt_that_cannot_be_is_one_sentence(subject, fields, text, said):
    with pytest.raises(UserError, match=said) as error:
        subject(**fields).prompt(text)
    assert "\n" not in str(error.value)


def test_a_row_has_room_for_as_many_tokens_as_can_be_predicted_in_it(subject):
    found = subject("posenc=learned")  # 16 positions: the 17th token is predicted, and never read
    assert found.room([1], None)[0] == 16
    assert found.room([1] * 16, None)[0] == 1
    assert found.room([1], 5) == (5, "--tokens says so")
    n_tokens, why = found.room([1, 3], 100)
    assert n_tokens == 15
    assert "posenc.n_positions=16" in why
    with pytest.raises(UserError, match=r"--prompt: has 17 tokens; posenc=learned has posenc\.n_positions=16"):
        found.room([1] * 17, 1)


def test_positions_without_an_end_go_beyond_a_row_where_they_are_asked_to(subject):
    found = subject("posenc=rope")
    assert found.room([1], None)[0] == 16
    assert found.room([1] * 30, 100)[0] == 100
    with pytest.raises(UserError, match=r"--prompt: has 30 tokens, more than the 16 of a row; --tokens N"):
        found.room([1] * 30, None)


def test_a_row_of_a_stream_begins_with_the_end_of_a_document(small, tiny_corpus):
    corpus = replace(tiny_corpus, bos=1, eos=2)
    assert row_start(small(), corpus) == 1
    assert row_start(small("layout=stream"), corpus) == 2


@pytest.mark.parametrize("ends", [2, [2, 5]])
def test_a_folder_says_how_its_texts_begin_and_end(model_of_a_folder, ends):
    folder, model = model_of_a_folder({"bos_token_id": 1, "eos_token_id": ends}, of_words(WORDS, unknown="<pad>"))
    found = of_folder(folder, texts.of_folder(folder))
    assert (found.start, found.ends) == (1, frozenset([2, 5] if ends != 2 else [2]))
    assert found.prompt("the cat") == [1, 3, 4]
    kwargs = {"n_tokens": 9, "how": Sampling(), "seed": 0, "rows": range(3)}
    assert generate(found.model.double(), [1], **kwargs) == generate(model.double(), [1], **kwargs)


@pytest.mark.parametrize("said", [{}, {"bos_token_id": 15, "eos_token_id": None}])
def test_a_folder_may_say_nothing_of_that(model_of_a_folder, said):
    folder, _ = model_of_a_folder(said, None)
    found = of_folder(folder, texts.of_folder(folder))
    assert (found.start, found.ends, found.tokenizer) == (None, frozenset(), None)


def test_a_torn_tokenizer_is_said(model_of_a_folder):
    folder, _ = model_of_a_folder({}, of_words(WORDS, unknown="<pad>"))
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match=r"tokenizer\.json: no tokenizer: "):
        texts.of_folder(folder)


@pytest.fixture
def model_of_a_folder(small, tmp_path):
    def make(special_tokens, tokenizer):
        run = small("recipe=llama", "model.embed_scale=1")
        model = build(run)
        named = dict(special_tokens) if tokenizer is None else {"bos_token_id": 1}
        folders.save(model, run, tmp_path / "hf", "llama", named, tokenizer)
        config = tmp_path / "hf" / "config.json"
        told = {"bos_token_id": None, "eos_token_id": None} | special_tokens
        text = config.read_text()
        for name, value in told.items():
            text = "".join(
                f'  "{name}": {"null" if value is None else value},\n' if f'"{name}"' in line else line
                for line in text.splitlines(keepends=True)
            )
        config.write_text(text)
        return tmp_path / "hf", model

    return make


def odd(document):
    """A grammar of documents whose tokens are odd, up to their end."""
    return next((f"{token} is even" for token in document if token % 2 == 0 and token != 2), "")


def test_the_share_of_samples_that_a_grammar_can_produce(small_request, tiny_corpus):
    """With equal logits the probability of an odd document is known: odd tokens, then the end, within 16 tokens."""
    request = small_request("eval.n_samples=600")
    model = build(request.run)
    with torch.no_grad():
        model.embed.weight.zero_()
    corpus = replace(tiny_corpus, bos=1, eos=2, fault=odd)
    expected = sum((7 / 15) ** i / 15 for i in range(16))
    found = judged(model, corpus, request.run, 600)
    assert found["sample/n"] == 600
    assert abs(found["sample/grammatical"] - expected) < 4 * (expected * (1 - expected) / 600) ** 0.5
    assert evaluate(model, corpus, request.run, request.evaluation).metrics.items() >= found.items()
    other = judged(model, corpus, replace(request.run, seed=1), 600)
    assert other != found, "each seed has samples of its own"
    assert judged(model, corpus, request.run, 0) == {}


def test_a_document_that_does_not_end_is_none(small, tiny_corpus):
    run = small()
    model = build(run)
    with torch.no_grad():
        model.embed.weight.zero_()
    corpus = replace(tiny_corpus, bos=1, eos=2, fault=lambda document: "")
    expected = 1 - (14 / 15) ** 16
    assert judged(model, corpus, run, 400)["sample/grammatical"] == pytest.approx(expected, abs=0.1)
