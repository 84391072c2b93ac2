"""A DFlash head of the usual shape with a stated number of layers."""

from __future__ import annotations

import pytest

from rooflines.errors import InputError
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.studies.serve import make_deployment, make_machine


@pytest.fixture(scope="module")
def target():
    return make_deployment("qwen3-30b-a3b", make_machine("b200-sxm-180gb"))


def test_layers_are_added_to_the_usual_five(target):
    """Eight, as the paper's drafter for Qwen3-Coder-30B-A3B has (arXiv 2602.06036, table 3)."""
    usual, five, eight = (
        make_drafter(text, target) for text in ("dflash", "dflash:layers=5", "dflash:layers=8")
    )
    assert five.weight_bytes() == usual.weight_bytes()
    # Attention of 32 and 2 x 4 heads of 128 on 2,048, a gated feed-forward of 3 h, two norms and those of heads.
    layer = 2 * 32 * 128 * 2048 + 2 * 4 * 128 * 2048 + 3 * 6144 * 2048 + 2 * 2048 + 2 * 128
    assert eight.weight_bytes() - usual.weight_bytes() == 3 * 2 * layer
    times = [float(one.draft(8.0, 1024.0, 15.0).seconds) for one in (usual, eight)]
    assert times[0] < times[1] < 1.6 * times[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("dflash:layers=49", "more than the 48 of qwen3-30b-a3b"),
        ("dflash:layers=999999999", "write fewer"),
        ("dflash:layers=0", "1 or more"),
        ("dflash:qwen3.5-35b-a3b-dflash,layers=8", "made for another|states its layers|tokenizer|vocabular"),
    ],
)
def test_layers_that_make_no_sense_are_refused(target, text, reason):
    with pytest.raises(InputError, match=reason):
        make_drafter(text, target)


def test_a_config_states_its_own_layers():
    small = make_deployment("qwen3-8b", make_machine("b200-sxm-180gb"))
    with pytest.raises(InputError, match="whose config states its layers"):
        make_drafter("dflash:qwen3-8b-dflash,layers=8", small)
