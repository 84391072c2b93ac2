"""Laws of intervals: what passes share drops out of ratios, and parts add up to no more than their sum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflines.studies.serve import make_deployment, make_machine
from rooflines.timing.uncertain import (
    CACHED,
    MEASURED,
    MEDIANS,
    OTHER_ENGINE,
    OTHER_LIBRARIES,
    PASSES,
    PRODUCTS_BY_MEDIANS,
    pass_estimate,
)

OWN = make_machine("h100-sxm")
MEDIAN = make_machine("h100-sxm", "none")
SERVED = make_deployment("llama-3.1-8b", OWN)
BY_MEDIANS = make_deployment("llama-3.1-8b", MEDIAN)

batches = st.integers(min_value=1, max_value=256).map(float)
widths = st.integers(min_value=2, max_value=16).map(float)
contexts = st.integers(min_value=1, max_value=32768).map(float)


@pytest.mark.parametrize(
    "shares",
    [MEASURED, PRODUCTS_BY_MEDIANS, MEDIANS, CACHED, PASSES, OTHER_ENGINE, OTHER_LIBRARIES],
)
def test_shares_of_a_variance_add_to_all_of_it(shares):
    parts = (shares.family, shares.region, shares.name, shares.name_region, shares.size, shares.own)
    assert sum(parts) == pytest.approx(1.0)


@settings(max_examples=40, deadline=None)
@given(batches, widths, contexts)
def test_a_ratio_is_better_known_than_independent_times_would_make_it(batch, width, context):
    decode = pass_estimate(SERVED.decode(batch, context), OWN, "decode")
    verify = pass_estimate(SERVED.verify(batch, context, width), OWN, "verify")
    if width * 4 <= 32:  # 4 query heads per kv head: attention as wide as was measured
        assert (verify / decode).log_sd < np.hypot(decode.log_sd, verify.log_sd)
        if batch * width <= 64:  # one region
            assert (verify / decode).log_sd < min(decode.log_sd, verify.log_sd)


@settings(max_examples=40, deadline=None)
@given(batches, contexts)
def test_another_engine_and_medians_are_never_surer(batch, context):
    time = SERVED.decode(batch, context)
    own = pass_estimate(time, OWN, "decode").log_sd
    engine = pass_estimate(time, OWN, "decode", software="engine").log_sd
    medians = pass_estimate(BY_MEDIANS.decode(batch, context), MEDIAN, "decode").log_sd
    assert own < engine
    assert own < medians
