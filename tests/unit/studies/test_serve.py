"""From names and texts to deployments: what a model has no use for is refused, not passed over."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from rooflines.cli import main
from rooflines.errors import InputError
from rooflines.studies.serve import make_deployment, make_machine

DENSE, EXPERTS, ENCODED = "llama-3.1-8b", "qwen3-30b-a3b", "t5-v1_1-xxl"


@pytest.fixture(scope="module")
def machine():
    return make_machine("h200-sxm-141gb")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"expert": 2}, "has no routed experts, so that expert parallelism 2 would leave devices idle"),
        ({"routing": "powerlaw:1.2"}, "has no routed experts: leave out routing 'powerlaw:1.2'"),
        ({"routing": "correlated:0.5"}, "has no routed experts: leave out routing"),
        ({"encoder_positions": 512}, r"has no encoder: leave out its positions \(512\)"),
    ],
)
def test_what_a_dense_decoder_has_no_use_for_is_refused(machine, given, reason):
    with pytest.raises(InputError, match=reason):
        make_deployment(DENSE, machine, **given)


def test_models_that_have_a_use_for_it_take_it(machine):
    served = make_deployment(EXPERTS, machine, expert=2, routing="powerlaw:1.2")
    assert served.parallelism.devices == 2
    assert served.decode(64.0, 512.0).seconds < make_deployment(EXPERTS, machine).decode(64.0, 512.0).seconds
    assert make_deployment(ENCODED, machine, encoder_positions=512).decode(1.0, 64.0).seconds > 0


def test_routing_and_encoder_positions_may_be_meant_for_another_model(machine):
    plain = make_deployment(DENSE, machine).decode(1.0, 512.0).seconds
    others = make_deployment(DENSE, machine, routing="powerlaw:1.2", encoder_positions=512, among_others=True)
    assert others.decode(1.0, 512.0).seconds == plain
    with pytest.raises(InputError, match="idle"):
        make_deployment(DENSE, machine, expert=2, among_others=True)


@pytest.mark.parametrize(
    ("command", "target"),
    [
        (("plan", "--drafter", "ngram", "--acceptance", "0.6", "--draft-length", "4"), "--target"),
        (("intensity", "--phase", "decode"), "--model"),
    ],
)
@pytest.mark.parametrize(
    "option", [("--ep", "2"), ("--encoder-positions", "64"), ("--routing", "powerlaw:1")]
)
def test_every_command_refuses_in_one_line(command, target, option):
    arguments = [*command, "--hardware", "h200-sxm-141gb", target, DENSE, "--context", "512", *option]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"rooflines: {DENSE} has no ")
