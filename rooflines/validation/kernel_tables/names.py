"""Names that tables use, and what they are called here."""

from __future__ import annotations

from typing import Final

from rooflines.dtypes import NumberFormat, number_format
from rooflines.errors import AmbiguousNameError, RooflinesError
from rooflines.hardware.catalogue import load_hardware
from rooflines.hardware.profile import HardwareProfile

# Names that the catalogue does not know, or that several devices share. Vidur timed the SXM parts of DGX
# systems (https://github.com/microsoft/vidur/tree/main/data/profiling); AIConfigurator's RTX PRO 6000 is the
# server card of the same chip and memory (https://pypi.org/project/aiconfigurator-core/).
_DEVICES: Final = {
    "a100": "a100-sxm4-80gb",
    "a100_dgx": "a100-sxm4-80gb",
    "a100_pairwise_nvlink": "a100-sxm4-80gb",
    "a100_pcie": "a100-pcie-80gb",
    "a800": "a800-sxm4-80gb",
    "h100": "h100-sxm5-80gb",
    "h100_dgx": "h100-sxm5-80gb",
    "h100_pcie": "h100-pcie-80gb",
    "h20_sxm": "h20-96gb",
    "rtx_pro_6000_server": "rtx-pro-6000-blackwell",
}
# AIConfigurator's words: sq is SmoothQuant (8-bit integers on both sides), *_wo quantises weights only,
# w4afp8 multiplies integers of 4 bits, one scale per 128, by 8-bit floats, and names that end in cutlass or
# trtllm say the kernel (load_moe_data of https://github.com/ai-dynamo/aiconfigurator).
_FORMATS: Final = {
    "fp8_block": "fp8-block",
    "int4_wo": "int4-g128",
    "int8_wo": "w8a16",
    "sq": "int8",
    "w4a16_mxfp4": "mxfp4",
    "w4a16_mxfp4_cutlass": "mxfp4",
    "w4a8_mxfp4_mxfp8": "mxfp4@fp8",
    "w4a8_mxfp4_mxfp8_trtllm": "mxfp4@fp8",
    "w4afp8": "int4-g128-sym@fp8",
    "w8a8_int8": "int8",
}


def find_device(name: str) -> HardwareProfile | str:
    """The profile behind a table's name of a device, or why there is none."""
    try:
        return load_hardware(_DEVICES.get(name, name))
    except AmbiguousNameError as error:
        return str(error)
    except RooflinesError:  # a name in no catalogue, or one that looks like a file which is none
        return f"device {name!r} is in no profile"


def device_of(name: str) -> HardwareProfile | None:
    """The profile behind a table's name of a device; None where there is none, or more than one."""
    found = find_device(name)
    return None if isinstance(found, str) else found


def format_of(name: str) -> NumberFormat | None:
    """The number format behind a table's name of a dtype; None where it is not known."""
    try:
        return number_format(_FORMATS.get(name, name))
    except RooflinesError:  # an unknown name, or arithmetic after '@' that does not exist
        return None
