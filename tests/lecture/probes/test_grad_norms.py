"""Section 2.2: gradient norms at initialisation."""

import pandas as pd
import pytest
import torch
from scipy import stats

from lecture04.data.documents import training_batches
from lecture04.data.types import load
from lecture04.lecture.probes import grad_norms
from lecture04.nn.init import build
from lecture04.training.loop import batch_loss

SMALL = ("data.n_train=40", "data.n_val=4", "data.n_test=4", "probe.n_seeds=2", "probe.depths=[1,3]")


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    return f"paths.outputs={tmp_path_factory.mktemp('outputs')}"


def test_a_row_for_every_layer_and_seed(ask, outputs):
    table = ask("grad_norms", *SMALL, outputs)
    counted = table.groupby(["placement", "n_layers"]).size()
    assert counted.to_dict() == {(p, n): 2 * (n + 3) for p in ("pre", "post") for n in (1, 3)}
    assert (table.value > 0).all()


def test_the_figures_are_the_gradients_of_the_training_loss(ask, resolved, outputs):
    """Written out for one model: 3 pre-norm layers are those of model.n_layers=3."""
    request, _ = resolved("probe=grad_norms", "model.n_layers=3", "placement=pre", "seed=1", *SMALL, outputs)
    model, corpus = build(request.run), load(request.run, request.session.outputs)
    batch = next(training_batches(corpus.train, seed=1, batch_size=32, length=64))
    batch_loss(model, batch).backward()
    table = ask("grad_norms", *SMALL, outputs)
    ours = table[(table.placement == "pre") & (table.n_layers == 3) & (table.seed == 1)]
    norms = [model.get_parameter(f"blocks.{i}.ffn.down.weight").grad.norm().item() for i in range(3)]
    assert ours[ours.quantity == "layer"].layer.tolist() == [1, 2, 3]
    assert ours[ours.quantity == "layer"].value.tolist() == pytest.approx(norms)
    ours = ours.set_index("quantity").value
    total = torch.cat([p.grad.flatten() for p in model.parameters()]).double().norm().item()
    assert ours["total"] == pytest.approx(total, rel=1e-4)
    assert ours[grad_norms.EVENNESS] == pytest.approx(max(norms) / min(norms))
    whole = [torch.cat([p.grad.flatten() for p in model.blocks[i].parameters()]).norm().item() for i in range(3)]
    assert ours[grad_norms.WHOLE_EVENNESS] == pytest.approx(max(whole) / min(whole))


def test_the_band_is_students_interval():
    values = [1.0, 2.0, 4.0]
    table = pd.DataFrame({"placement": "pre", "n_layers": 2, "quantity": "total", "layer": pd.NA, "value": values})
    (row,) = grad_norms.banded(table).itertuples()
    low, high = stats.t.interval(0.95, 2, loc=row.mean, scale=stats.sem(values))
    assert (row.mean - row.half_width, row.mean + row.half_width) == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [((), [2, 3, 6, 12, 24]), (("model.n_layers=6",), [6]), (("model.n_layers=6", "probe.depths=[3]"), [3])],
)
def test_depths(resolved, overrides, expected):
    request, options = resolved("probe=grad_norms", *overrides)
    assert grad_norms.depths(request.run, options.depths) == expected


def test_the_plot_has_a_line_and_a_band_for_each_depth(ask, outputs):
    figure = grad_norms.plot(ask("grad_norms", *SMALL, outputs))
    assert [(len(axes.lines), len(axes.collections)) for axes in figure.axes] == [(2, 2)] * 2
    for axes in figure.axes:
        assert len({line._unscaled_dash_pattern for line in axes.lines}) == 2  # told apart in grey
        assert [text.get_text() for text in axes.texts] == ["1", "3"]
    assert "nats" in figure.axes[0].get_ylabel()


@pytest.fixture(scope="module")
def full(ask, outputs):
    """Mean over 5 seeds at full size, by placement, depth and quantity; the layer is the last one."""
    table = ask("grad_norms", outputs)
    table = table[(table.layer == table.n_layers) | table.layer.isna()]
    return table.groupby(["placement", "n_layers", "quantity"]).value.mean()


@pytest.mark.slow
def test_post_grads(full):
    assert all(0.5 < full["post", n, "layer"] < 2 for n in (2, 6, 12, 24))
    assert full["post", 24, "total"] / full["post", 2, "total"] > 1.5


@pytest.mark.slow
def test_pre_grads(full):
    """The last layer's part of the claim, and less growth of the total than post-norm has.

    The other part, a total that hardly grows, does not come out.
    """
    assert 0.3 < full["pre", 24, "layer"] / full["pre", 6, "layer"] < 0.6
    growth = {p: full[p, 24, "total"] / full[p, 6, "total"] for p in ("pre", "post")}
    assert growth["pre"] < growth["post"]
