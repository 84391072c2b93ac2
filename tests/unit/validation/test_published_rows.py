"""Rows of tables of speedups: what becomes of each, and why the others are left out."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from rooflines.errors import FileFormatError, InputError
from rooflines.hardware.catalogue import load_hardware
from rooflines.models.readers import read_model
from rooflines.validation.published.names import _DEVICES, _MODELS, device_of, model_of
from rooflines.validation.published.proposals import read_proposal
from rooflines.validation.published.rows import read_claims, stated_acceptance
from rooflines.validation.published.sources import FIELD, HOST_BOUND, PRODUCTION, source_of

TABLES = Path(__file__).parent / "published"


@pytest.fixture(scope="module")
def published():
    return read_claims(TABLES / "speedups.csv")


def cells(**changes):
    row = {"drafter_kind": "eagle3", "gamma_or_tree": "chain k=3", "draft_model": "", "draft_depth": ""}
    return row | changes


def test_every_row_becomes_a_claim_or_has_a_reason(published):
    claims, unused = published
    with (TABLES / "speedups.csv").open(encoding="utf-8") as file:
        rows = len(list(csv.DictReader(file)))
    assert len(claims) + len(unused) == rows
    assert {claim.line for claim in claims}.isdisjoint(one.line for one in unused)
    reasons = " ".join(one.reason for one in unused)
    for part in ("Qwama-0.5B", "own notes exclude", "acceptance is not stated", "no preset"):
        assert part in reasons


def test_a_chain_of_a_production_engine(published):
    claim = next(
        one for one in published[0] if one.model == "llama-3.1-8b" and one.source == "specbundle2026"
    )
    assert (claim.device, claim.devices, claim.batch, claim.context) == ("h200-sxm-141gb", None, 1, None)
    assert claim.proposal.text == "eagle3:eagle3-llama3.1-8b"
    assert claim.proposal.draft_length == 5
    assert claim.acceptance == f"accepted-length:{claim.tokens_per_cycle!r}@5"
    assert claim.known.tier == PRODUCTION
    assert claim.known.engine == "sglang"


def test_a_tree_counts_its_root_among_its_verified_tokens(published):
    claim = next(one for one in published[0] if "topk=4" in one.proposal.text)
    assert claim.proposal.text.endswith("topk=4,nodes=7")
    assert claim.proposal.draft_length == 7


def test_shares_of_drafted_tokens_become_lengths(published):
    claim = next(one for one in published[0] if one.source == "qwen38_mtp_community")
    assert claim.tokens_per_cycle == pytest.approx(1 + 2 * 0.56)
    assert (claim.weights, claim.proposal.kind, claim.known.tier) == ("q4_k", "mtp", FIELD)
    assert "48 recurrent and 16 attention layers" in claim.notes[0]


def test_speedups_above_the_tokens_per_cycle_are_impossible(published):
    impossible = [one for one in published[0] if one.impossible]
    assert [one.source for one in impossible] == ["specdecodebench2026"]
    assert impossible[0].speedup > impossible[0].tokens_per_cycle


def test_field_tables_name_columns_otherwise():
    claims, unused = read_claims(TABLES / "field.csv")
    assert {one.source for one in claims} == {"sudoingX/qwen38-mtp (llama.cpp)", "SGLang"}
    assert {one.known.tier for one in claims} == {FIELD}
    assert {one.known.engine for one in claims} == {"llama.cpp", "sglang"}
    assert any("incomplete" in one.reason for one in unused)
    assert any("differ from each other" in one.reason for one in unused)


def test_one_paper_that_ran_several_engines_is_told_apart():
    assert source_of("dflash2026", "Table 5 (SGLang)").engine == "sglang"
    assert source_of("dflash2026", "Table 3 (SGLang, FA4)").engine == "sglang-overlap"
    assert source_of("dflash2026", "Table 1 (Transformers backend)").tier == HOST_BOUND
    assert source_of("dflash2026", "Table 11 (SGLang)").tier == PRODUCTION
    assert source_of("nobody2030", "Table 1").tier == FIELD


def test_devices_that_a_source_names_beside_its_table(published):
    served = [one for one in published[0] if one.source == "specbundle2026"]
    assert {one.devices for one in served if one.model == "qwen3-30b-a3b"} == {4}
    assert {one.devices for one in served if one.model == "llama-3.1-8b"} == {None}


def test_every_name_leads_to_facts_that_ship():
    for known in _MODELS.values():
        assert read_model(known.preset).parameters_total > 0
    for profile in filter(None, _DEVICES.values()):
        assert load_hardware(profile).id == profile


def test_names():
    assert model_of("meta-llama/Llama-3.1-8B-Instruct").preset == "llama-3.1-8b"
    assert model_of("Qwen3-Next-80B-A3B-Instruct-FP8").weights == "fp8-block"
    assert model_of("DeepSeek-V3-0324").preset == "deepseek-v3"
    assert model_of("Llama3-8B").preset == "llama-3-8b"
    assert (model_of("Qwen3-32B-FP8").preset, model_of("Qwen3-32B-FP8").weights) == ("qwen3-32b", "fp8-block")
    assert model_of("nvidia/Llama-3.1-8B-Instruct-FP8").weights == "fp8"
    assert device_of("RTX 4090") == "rtx-4090"
    assert device_of("AMD MI300X") == "mi300x"
    assert device_of("Apple M4 Max") == "m4-max"
    for read, text in ((model_of, "Chinchilla 70B"), (model_of, ""), (device_of, "Abacus 3")):
        with pytest.raises(InputError):
            read(text)


def test_proposals():
    assert read_proposal(cells(), "gpt-oss-120b").text == "eagle3"
    found = read_proposal(cells(gamma_or_tree="60-node tree depth 6"), "gpt-oss-120b")
    assert (found.text, found.draft_length) == ("eagle3:topk=10,nodes=60", 6)
    assert "10 nodes" in found.notes[0]
    block = read_proposal(cells(drafter_kind="dflash", gamma_or_tree=""), "qwen3-8b")
    assert (block.text, block.draft_length) == ("dflash:qwen3-8b-dflash,block=16", 15)
    assert "block of 16" in block.notes[0]
    # Layers that a row states count where no published head says more.
    deep = cells(drafter_kind="dflash", gamma_or_tree="block 16", draft_model="DFlash 8-layer")
    assert read_proposal(deep, "qwen3-30b-a3b").text == "dflash:layers=8,block=16"
    assert read_proposal(deep, "qwen3-8b").text == "dflash:qwen3-8b-dflash,block=16"
    # A DSpark block is drafts only, so gamma inputs give gamma drafts.
    assert read_proposal(cells(drafter_kind="DSpark", gamma_or_tree="block 7"), "qwen3-8b").draft_length == 7
    own = cells(drafter_kind="independent", draft_model="Qwen/Qwen3-0.6B")
    assert read_proposal(own, "qwen3-8b").text == "independent:qwen3-0.6b"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"drafter_kind": "hydra"}, "not modelled"),
        ({"drafter_kind": "independent"}, "draft model is not stated"),
        ({"gamma_or_tree": "60-node tree"}, "depth of the tree"),
        ({"drafter_kind": "mtp", "gamma_or_tree": "60-node tree depth 3"}, "a tree of mtp"),
        ({"gamma_or_tree": "block 8"}, "have no blocks"),
        ({"drafter_kind": "medusa"}, "tree of medusa is not stated"),
    ],
)
def test_proposals_that_are_refused(changes, reason):
    with pytest.raises(InputError, match=reason):
        read_proposal(cells(**changes), "llama-3.1-8b")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({}, "not stated"),
        ({"tau_mean_accepted_incl_bonus": "5.2"}, "impossible at draft length 3"),
        ({"tau_mean_accepted_incl_bonus": "x"}, "is no number"),
        ({"alpha": "1.2", "alpha_is": "token rate"}, "no share"),
        ({"alpha": "0.8", "alpha_is": "head top-1"}, "gives no tokens per cycle"),
        ({"alpha": "0.8"}, "'unknown'"),
        ({"acceptance": "0.8", "acceptance_def": "accepted/drafted (gated drafts)"}, "varies"),
        ({"acceptance": "", "acceptance_def": "accepted/drafted"}, "not stated"),
    ],
)
def test_acceptance_that_says_too_little_is_refused(row, reason):
    with pytest.raises(InputError, match=reason):
        stated_acceptance(row, 3, "")


def test_token_rates_are_constants():
    text, tau = stated_acceptance({"alpha": "0.75", "alpha_is": "token rate: E[min(p,q)]"}, 7, "")
    assert (text, tau) == ("0.75", pytest.approx((1 - 0.75**8) / 0.25))


def test_sglangs_length_counts_the_bonus():
    row = {"acceptance": "3.1", "acceptance_def": "average accepted length"}
    assert stated_acceptance(row, 7, "sglang")[1] == 3.1
    with pytest.raises(InputError):
        stated_acceptance(row, 7, "mlx")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not a CSV file"),
        ("a,b\n1,2\n", "lacks the column"),
        ("hardware;target_model\nH100;llama\n", "written with semicolons"),
        ("hardware,notes\nH100,x,1.5\n", "a row has more cells than the header has names"),
    ],
)
def test_other_files_are_refused(tmp_path, text, reason):
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileFormatError, match=reason):
        read_claims(path)
    with pytest.raises(FileFormatError, match="cannot be read"):
        read_claims(tmp_path / "none.csv")
