from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflines.errors import ConfigError, RooflinesError, UnsupportedArchitectureError
from rooflines.models.adapters import FAMILIES
from rooflines.models.gguf import GgufFile, Strings, read_gguf
from rooflines.models.gguf_config import ARCHITECTURES, config_of, with_stored_formats
from rooflines.models.readers import read_config, read_model
from rooflines.models.stored import StoredTensor, StoredTensors

HIDDEN, FFN, VOCABULARY = 64, 96, 128
METADATA = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.context_length": 512,
    "llama.embedding_length": HIDDEN,
    "llama.feed_forward_length": FFN,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.rope.freq_base": 10000.0,
}


def tensor(name, *shape, kind="F16"):
    elements = 1
    for axis in shape:
        elements *= axis
    sizes = {"F32": (1, 4), "F16": (1, 2), "Q8_0": (32, 34), "I8": (1, 1)}
    block, size = sizes[kind]
    return StoredTensor(name, kind, shape, elements // block * size)


def block(index, kv=2, width=FFN, kind="F16"):
    name = f"blk.{index}."
    attention = [
        tensor(f"{name}attn_norm.weight", HIDDEN, kind="F32"),
        tensor(f"{name}attn_q.weight", HIDDEN, HIDDEN, kind=kind),
        tensor(f"{name}attn_k.weight", kv * 16, HIDDEN, kind=kind),
        tensor(f"{name}attn_v.weight", kv * 16, HIDDEN, kind=kind),
        tensor(f"{name}attn_output.weight", HIDDEN, HIDDEN, kind=kind),
    ]
    return [
        *(attention if kv else []),
        tensor(f"{name}ffn_norm.weight", HIDDEN, kind="F32"),
        tensor(f"{name}ffn_gate.weight", width, HIDDEN, kind=kind),
        tensor(f"{name}ffn_up.weight", width, HIDDEN, kind=kind),
        tensor(f"{name}ffn_down.weight", HIDDEN, width, kind=kind),
    ]


AROUND = [
    tensor("token_embd.weight", VOCABULARY, HIDDEN, kind="Q8_0"),
    tensor("output_norm.weight", HIDDEN, kind="F32"),
]


def header(tensors=None, **metadata):
    changed = {f"llama.{key.replace('__', '.')}": value for key, value in metadata.items()}
    kept = {key: value for key, value in {**METADATA, **changed}.items() if value is not None}
    every = [*AROUND, *block(0), *block(1)] if tensors is None else tensors
    return GgufFile(kept, StoredTensors(tuple(every)))


def model(file):
    config, _ = config_of(file, "m")
    return with_stored_formats(read_config(config, "m"), file)


def test_config_in_hugging_face_keys():
    config, ignored = config_of(header(), "m")
    assert config == {
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": FFN,
        "max_position_embeddings": 512,
        "vocab_size": VOCABULARY,
        "tie_word_embeddings": True,
        "torch_dtype": "float16",
        "attention_bias": False,
        "mlp_bias": False,
    }
    assert ignored == ("llama.rope.freq_base",)


def test_every_tensor_keeps_its_own_format():
    file = header(
        [*AROUND, *block(0, kind="F16"), *block(1, kind="Q8_0"), tensor("rope_freqs.weight", 8, kind="F32")]
    )
    spec = model(file)
    assert dict(spec.layers[0].formats)["query"] == "fp16"
    assert dict(spec.layers[1].formats)["down"] == "q8_0"
    assert dict(spec.formats) == {"embedding": "q8_0", "head": "q8_0", "vectors": "fp32"}
    assert spec.weight_bytes == file.stored.size_bytes - 32
    assert spec.kv_bytes_per_token() == 2 * 2 * 2 * 16 * 2


def test_a_head_of_its_own_is_not_tied():
    file = header([*AROUND, tensor("output.weight", VOCABULARY, HIDDEN, kind="F16"), *block(0), *block(1)])
    spec = model(file)
    assert not spec.tied_embeddings
    assert dict(spec.formats)["head"] == "fp16"
    assert spec.weight_bytes == file.stored.size_bytes


# https://github.com/oobabooga/textgen/issues/7012: per-layer lists, with layers that have no attention.
def test_lists_with_one_entry_a_layer():
    file = header(
        [*AROUND, *block(0, kv=0, width=32), *block(1, kv=4, width=64)],
        attention__head_count=(0, 4),
        attention__head_count_kv=(0, 4),
        feed_forward_length=(32, 64),
    )
    spec = model(file)
    assert spec.layers[0].mixer is None
    assert spec.layers[1].mixer.kv_heads == 4
    assert [layer.feed_forwards[0].width for layer in spec.layers] == [32, 64]
    assert spec.kv_elements_per_token == 2 * 4 * 16
    assert spec.weight_bytes == file.stored.size_bytes


def test_old_files_with_one_tensor_an_expert():
    def experts(index):
        name = f"blk.{index}."
        kept = [
            t
            for t in block(index)
            if "ffn_gate." not in t.name and "ffn_up" not in t.name and "ffn_down" not in t.name
        ]
        parts = [("gate", FFN, HIDDEN), ("up", FFN, HIDDEN), ("down", HIDDEN, FFN)]
        each = [tensor(f"{name}ffn_{part}.{e}.weight", o, i) for part, o, i in parts for e in range(4)]
        return [*kept, tensor(f"{name}ffn_gate_inp.weight", 4, HIDDEN, kind="F32"), *each]

    file = header([*AROUND, *experts(0), *experts(1)], expert_count=4, expert_used_count=2)
    spec = model(file)
    assert spec.family == "mixtral"
    assert dict(spec.layers[0].formats)["expert_down"] == "fp16"
    assert dict(spec.layers[0].formats)["router"] == "fp32"
    assert spec.weight_bytes == file.stored.size_bytes


def test_layers_that_draft_tokens_are_not_the_models():
    extra = [*block(2), tensor("blk.2.nextn.eh_proj.weight", HIDDEN, 2 * HIDDEN)]
    spec = model(header([*AROUND, *block(0), *block(1), *extra], block_count=3, nextn_predict_layers=1))
    assert len(spec.layers) == 2


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ((True, False, True, True), [8, None, 8, 8]),
        ((1, 0, 0, 1), [8, None, None, 8]),
        (2, [8, None, 8, None]),
        (None, [8, 8, 8, 8, 8, None]),
    ],
)
def test_windows_by_list_by_period_or_as_llama_cpp_builds_them_in(window, expected):
    metadata = {
        "general.architecture": "gemma3",
        "gemma3.block_count": len(expected),
        "gemma3.embedding_length": HIDDEN,
        "gemma3.feed_forward_length": FFN,
        "gemma3.attention.head_count": 4,
        "gemma3.attention.head_count_kv": 2,
        "gemma3.attention.key_length": 16,
        "gemma3.attention.value_length": 16,
        "gemma3.attention.sliding_window": 8,
        "gemma3.attention.sliding_window_pattern": window,
    }
    file = GgufFile({k: v for k, v in metadata.items() if v is not None}, StoredTensors(tuple(AROUND)))
    spec = read_config(config_of(file, "m")[0], "m")
    assert [layer.mixer.window for layer in spec.layers] == expected


def test_every_architecture_leads_to_a_family_that_is_read():
    for architecture in ARCHITECTURES:
        file = GgufFile({"general.architecture": architecture}, StoredTensors(tuple(AROUND)))
        assert config_of(file, "m")[0]["model_type"] in FAMILIES, architecture


REFUSED = [
    (header(attention__head_count="four"), "num_attention_heads"),
    (header(attention__head_count=0), "num_attention_heads"),
    (header(embedding_length=None), "hidden_size"),
    (header(block_count=Strings(3)), "llama.block_count is a list of strings"),
    (header(block_count="two"), "llama.block_count is 'two', not a whole number"),
    (header(attention__key_length=16, attention__value_length=8), "keys of width 16 and values of width 8"),
    (header(block(0)), "no table token_embd.weight"),
    (header([tensor("token_embd.weight", 64), *block(0)]), "no table token_embd.weight"),
    (
        header(feed_forward_length=128),
        "the file holds 69,952 parameters, but a llama model of these sizes has 82,240",
    ),
    (
        header([*AROUND, *block(0), *block(1), tensor("blk.1.extra.weight", 8, 8)]),
        "this variant is not modelled",
    ),
    (header([*AROUND, *block(0), *block(1, kind="I8")]), "I8, which is no type of weights"),
    (
        header(
            [*AROUND, *(t if "norm" not in t.name else tensor(t.name, HIDDEN) for t in block(0)), *block(1)]
        ),
        "norms and biases: stored as F16 and F32",
    ),
]


@pytest.mark.parametrize(("file", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_headers_that_do_not_add_up_are_refused(file, message):
    with pytest.raises(RooflinesError) as refused:
        model(file)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_unknown_architectures_are_refused_by_name():
    with pytest.raises(
        UnsupportedArchitectureError, match=r"GGUF architecture 'qwen2x' is not modelled; near: qwen2"
    ):
        config_of(GgufFile({"general.architecture": "qwen2x"}, StoredTensors(())), "m")
    with pytest.raises(ConfigError, match=r"no general\.architecture"):
        config_of(GgufFile({}, StoredTensors(())), "m")


def test_blocks_beyond_the_stated_number_are_refused():
    file = GgufFile({**METADATA, "llama.block_count": 1}, header().stored)
    with pytest.raises(ConfigError, match=r"block_count is 1, but the file holds blk\.1\."):
        model(file)


def test_a_real_file(smollm2_gguf):
    spec = read_model(smollm2_gguf)
    stored = read_gguf(smollm2_gguf).stored
    assert spec.parameters_total == 134_515_008
    assert spec.weight_bytes == stored.size_bytes == 96_576_768
    assert spec.tied_embeddings
    assert dict(spec.layers[29].formats)["down"] == "q4_1"
    assert dict(spec.formats)["head"] == "q8_0"


VALUES = st.one_of(
    st.integers(-4, 600),
    st.sampled_from(
        [2**40, 2**63, True, 0.5, float("nan"), "four", Strings(4), (8, 0), (1, 2, 3), (0.5, 1.5), ()]
    ),
    st.none(),
)


@settings(max_examples=600, deadline=None)
@given(changes=st.dictionaries(st.sampled_from(sorted(METADATA)), VALUES, min_size=1, max_size=3))
def test_mutated_metadata_is_read_or_refused(changes):
    metadata = {key: value for key, value in {**METADATA, **changes}.items() if value is not None}
    file = GgufFile(metadata, header().stored)
    try:
        spec = model(file)
    except RooflinesError as mistake:
        message = str(mistake)
    else:
        message = ""
        assert spec.parameters_total == sum(tensor.elements for tensor in file.stored.tensors)
        assert spec.weight_bytes == file.stored.size_bytes
    assert "\n" not in message
