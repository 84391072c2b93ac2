"""Laws that hold for every model, and mutated configs: a spec whose invariants hold, or a RooflinesError."""

from __future__ import annotations

import copy
import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rooflines.errors import RooflinesError
from rooflines.models.catalogue import list_presets, load_preset
from rooflines.models.drafter_readers import READERS, read_drafter
from rooflines.models.drafters import DrafterSpec
from rooflines.models.readers import read_model
from rooflines.models.spec import ModelSpec

PRESETS = list_presets()
DRAFTERS = [
    {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_hidden_layers": 1,
        "vocab_size": 128256,
        "draft_vocab_size": 32000,
        "torch_dtype": "bfloat16",
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2, 3]},
    },
    {
        "architectures": ["DSparkDraftModel"],
        "model_type": "qwen3",
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "num_hidden_layers": 5,
        "vocab_size": 151936,
        "block_size": 7,
        "dtype": "bfloat16",
        "dflash_config": {"markov_rank": 256, "target_layer_ids": [1, 9], "enable_confidence_head": True},
    },
    {"medusa_num_heads": 5, "medusa_num_layers": 1, "base_model_name_or_path": "lmsys/vicuna-7b-v1.3"},
]
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([10**6, 2**31, 10**18, 10**30, -1, 0, 0.5, 1e300, float("nan"), float("inf"), 128.0]),
    st.sampled_from(["", "128", "auto", "bfloat16", "full_attention", "gelu", "M*E-", "\x00", "ж"]),
    st.lists(st.one_of(st.none(), st.integers(-1, 9), st.sampled_from(["full_attention", "x"])), max_size=4),
    st.dictionaries(
        st.sampled_from(["hidden_size", "no_op", "quant_method"]), st.integers(-1, 5), max_size=2
    ),
)


def invariants(spec: ModelSpec) -> None:
    assert 0 < spec.parameters_active <= spec.parameters_total
    assert 0 <= spec.parameters_active_without_embedding <= spec.parameters_active
    assert spec.weight_bytes > 0
    assert math.isfinite(spec.kv_bytes_per_token())
    assert spec.kv_elements(0) == 0
    assert 0 <= spec.kv_elements(10) <= spec.kv_elements(100) <= 100 * spec.kv_elements_per_token
    assert sum(count for _, count in spec.layer_groups) == len(spec.layers)
    assert spec.state_elements >= 0


def outcome(read):
    """What was read, or the message of the refusal; anything else is a traceback and fails."""
    try:
        return read()
    except RooflinesError as problem:
        return str(problem)


def mutated(config: dict, data) -> dict:
    config = copy.deepcopy(config)
    for _ in range(data.draw(st.integers(1, 3))):
        place = config
        nested = [key for key, value in config.items() if isinstance(value, dict)]
        if nested and data.draw(st.booleans()):
            place = config[data.draw(st.sampled_from(sorted(nested)))]
        keys = sorted(place) or ["hidden_size"]
        key = data.draw(st.sampled_from(keys))
        way = data.draw(
            st.sampled_from(["drop", "odd", "string", "negate", "huge", "list", "nest", "double"])
        )
        value = place.get(key)
        if way == "drop":
            place.pop(key, None)
        elif way == "odd":
            place[key] = data.draw(ODD)
        elif way == "string":
            place[key] = str(value)
        elif way == "negate":
            place[key] = -value if isinstance(value, int) else data.draw(ODD)
        elif way == "huge":
            place[key] = value * 10**9 if isinstance(value, int) else [value] * 3
        elif way == "list":
            place[key] = value[:-1] if isinstance(value, list) else [value] * data.draw(st.integers(0, 40))
        elif way == "nest":
            inner = data.draw(st.sampled_from(["text_config", "llm_config", "thinker_config"]))
            config = {inner: config, **({key: value} if data.draw(st.booleans()) else {})}
        else:
            config = {**config, "text_config": dict(config)}
    return config


@settings(
    max_examples=2500, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(data=st.data())
def test_mutated_configs_give_a_sound_spec_or_a_clear_error(data):
    config = mutated(load_preset(data.draw(st.sampled_from(PRESETS))), data)
    found = outcome(lambda: read_model(config, "mutant"))
    if isinstance(found, ModelSpec):
        invariants(found)
    else:
        assert found
        assert "\n" not in found


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_mutated_drafter_configs(data):
    config = mutated(data.draw(st.sampled_from(DRAFTERS)), data)
    method = data.draw(st.sampled_from([None, *READERS]))
    found = outcome(lambda: read_drafter(config, method, name="mutant"))
    if isinstance(found, DrafterSpec):
        assert found.parameters > 0
        assert found.weight_bytes > 0
        assert found.kv_elements(10) >= 0
    else:
        assert found
        assert "\n" not in found


@settings(max_examples=300, deadline=None)
@given(content=st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode)))
def test_any_bytes_in_a_file(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "config.json"
    path.write_bytes(content)
    with pytest.raises(RooflinesError):
        read_model(path)


@pytest.mark.parametrize("name", PRESETS)
def test_invariants_of_every_preset(name):
    spec = read_model(name)
    invariants(spec)
    matrices = sum(
        count * sum(matrix.parameters for matrix in layer.matrices(spec.hidden))
        for layer, count in (*spec.layer_groups, *spec.encoder_groups)
    )
    assert matrices < spec.parameters_total
    # The order in which keys stand in a file means nothing.
    turned = dict(reversed(load_preset(name).items()))
    assert read_model(turned, name).layers == spec.layers


@pytest.mark.parametrize("name", PRESETS)
def test_a_dropped_dimension_is_never_replaced_by_a_default(name):
    """Without any one of the sizes that every model has, the config is refused."""
    config = load_preset(name)
    for key in ("hidden_size", "n_embd", "d_model", "vocab_size", "padded_vocab_size", "num_hidden_layers"):
        pattern = key == "num_hidden_layers" and "hybrid_override_pattern" in config
        if key not in config or pattern:
            continue
        with pytest.raises(RooflinesError, match=key):
            read_model({other: value for other, value in config.items() if other != key}, name)


@given(
    st.integers(1, 4).map(lambda power: 2**power),
    st.integers(1, 64),
    st.integers(1, 8).map(lambda power: 2**power),
)
def test_kv_never_depends_on_query_heads(kv_heads, groups, size):
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": kv_heads * groups,
        "num_key_value_heads": kv_heads,
        "head_dim": size,
        "vocab_size": 100,
    }
    assert read_model(config).kv_elements_per_token == 2 * 2 * kv_heads * size


def test_reading_does_not_change_the_config():
    config = load_preset("deepseek-v3")
    before = json.dumps(config)
    read_model(config, "same")
    assert json.dumps(config) == before
