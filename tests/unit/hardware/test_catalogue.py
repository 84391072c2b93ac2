from __future__ import annotations

import os

import pytest

from rooflines.errors import AmbiguousNameError, FileFormatError, UnknownNameError, bare
from rooflines.hardware import catalogue, list_hardware, load_hardware
from rooflines.hardware.catalogue import ENVIRONMENT, data_folder, hardware_files, read_profile


@pytest.fixture(autouse=True)
def no_folders_of_the_user(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT, raising=False)


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A folder of the user's own profiles."""
    folder = tmp_path / "mine"
    folder.mkdir()
    monkeypatch.setenv(ENVIRONMENT, str(folder))
    return folder


def write(folder, name, text=None):
    file = folder / f"{name}.toml"
    file.write_text(text or f'id = "{name}"\nname = "My {name}"\nmemory_bandwidth = "1 TB/s"\n')
    return file


def test_all_devices_are_listed_by_id_in_order():
    listed = list_hardware()
    assert len(listed) == 80
    assert list(listed) == sorted(set(listed))
    assert [file.name.removesuffix(".toml") for file in hardware_files()] == list(listed)


def test_an_id_loads_its_profile():
    assert load_hardware("h100-sxm5-80gb").name == "NVIDIA H100 SXM5 80GB"


def test_loading_by_id_reads_one_file_only(monkeypatch):
    read = []
    real = catalogue._text
    monkeypatch.setattr(catalogue, "_text", lambda file: read.append(file) or real(file))
    load_hardware("h100-sxm5-80gb")
    assert len(read) == 1


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("H100-SXM5-80GB", "h100-sxm5-80gb"),
        ("h100_sxm5_80gb", "h100-sxm5-80gb"),
        (" H100 SXM5 80GB ", "h100-sxm5-80gb"),
        ("H100-SXM", "h100-sxm5-80gb"),
        ("h100_sxm", "h100-sxm5-80gb"),
        ("H100 80GB", "h100-sxm5-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("H100 PCIe", "h100-pcie-80gb"),
        ("H100 NVL", "h100-nvl-94gb"),
        ("A100-SXM-80GB", "a100-sxm4-80gb"),
        ("A100 80GB SXM", "a100-sxm4-80gb"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb"),
        ("A100-80GB-PCIe", "a100-pcie-80gb"),
        ("H200", "h200-sxm-141gb"),
        ("B200", "b200-sxm-180gb"),
        ("GB200", "gb200"),
        ("L40S", "l40s"),
        ("RTX 4090", "rtx-4090"),
        ("nvidia geforce rtx 4090", "rtx-4090"),
        ("MI300X", "mi300x"),
        ("AMD Instinct MI300X", "mi300x"),
        ("TPU v5e", "tpu-v5e"),
        ("M1", "m1"),
        ("NVIDIA RTX PRO 6000 Blackwell (Workstation/Server)", "rtx-pro-6000-blackwell"),
    ],
)
def test_common_spellings_resolve(name, device):
    assert load_hardware(name).id == device


@pytest.mark.parametrize("device", list_hardware())
def test_the_full_name_resolves(device):
    assert load_hardware(load_hardware(device).name).id == device


@pytest.mark.parametrize(
    ("name", "between"),
    [
        ("h100", {"h100-sxm5-80gb", "h100-pcie-80gb", "h100-nvl-94gb"}),
        ("H100", {"h100-sxm5-80gb", "h100-pcie-80gb", "h100-nvl-94gb"}),
        ("A100", {"a100-sxm4-40gb", "a100-sxm4-80gb", "a100-pcie-40gb", "a100-pcie-80gb"}),
        ("a100 80gb", {"a100-sxm4-80gb", "a100-pcie-80gb"}),
        ("GH200", {"gh200-96gb", "gh200-144gb"}),
    ],
)
def test_a_name_of_several_devices_says_between_what_to_choose(name, between):
    with pytest.raises(AmbiguousNameError) as caught:
        load_hardware(name)
    assert set(caught.value.candidates) == between
    assert all(device in str(caught.value) for device in between)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("h100-sxm5-80g", "h100-sxm5-80gb"),
        ("h200-xsm", "H200-SXM"),
        ("v100", "v100-sxm2-32gb"),
        ("l40z", "l40s"),
    ],
)
def test_an_unknown_name_gives_near_matches_and_a_way_on(name, near):
    with pytest.raises(UnknownNameError) as caught:
        load_hardware(name)
    assert near in caught.value.near
    assert "rooflines hardware list" in str(caught.value)


@pytest.mark.parametrize("name", ["", "  ", "---", "\N{SNOWMAN}"])
def test_what_is_no_name_is_unknown(name):
    with pytest.raises(UnknownNameError):
        load_hardware(name)


def test_a_file_is_loaded_by_its_path(tmp_path, monkeypatch):
    file = write(tmp_path, "card")
    assert load_hardware(file).id == load_hardware(str(file)).id == "card"
    monkeypatch.chdir(tmp_path)
    assert load_hardware("card.toml").id == load_hardware("./card.toml").id == "card"


def test_a_users_folder_is_searched_before_the_shipped_profiles(mine):
    write(
        mine,
        "card",
        'id = "card"\nname = "A card"\naliases = ["Old Faithful"]\n\n[memory_bandwidth]\nvalue = "1 TB/s"\nbasis = "measured"\n',
    )
    write(mine, "l4", 'id = "l4"\nname = "My L4"\n')
    assert load_hardware("card").name == load_hardware("old-faithful").name == "A card"
    assert load_hardware("l4").name == "My L4"
    assert len(list_hardware()) == 81


def test_several_folders_can_be_named(tmp_path, monkeypatch):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        write(folder, folder.name)
    monkeypatch.setenv(ENVIRONMENT, os.pathsep.join(map(str, folders)))
    assert {"one", "two"} < set(list_hardware())


def test_other_files_in_a_folder_are_no_profiles(mine):
    (mine / "README.md").write_text("mine")
    (mine / "old.toml").mkdir()
    assert len(list_hardware()) == 80


def test_a_name_that_two_profiles_claim_is_ambiguous(mine):
    for name in ("card", "board"):
        write(mine, name, f'id = "{name}"\nname = "{name}"\naliases = ["thing"]\n')
    with pytest.raises(AmbiguousNameError, match="'board' or 'card'"):
        load_hardware("Thing")


def test_a_folder_that_is_none_is_named(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, "/nowhere/at/all")
    with pytest.raises(
        FileFormatError, match=f"{ENVIRONMENT} names '/nowhere/at/all', which is not a folder"
    ):
        load_hardware("h100-sxm5-80gb")


def test_a_broken_file_in_a_folder_is_named_when_names_are_searched(mine):
    file = write(mine, "broken", "aliases = [")
    with pytest.raises(FileFormatError, match=rf"{file} is not valid TOML"):
        load_hardware("H100-SXM")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the file is empty"),
        (b"# nothing but a comment\n", "the file is empty"),
        (b"\x00\xff\xfe\x81" * 64, "is not a text file"),
        (b"id = card\n", "is not valid TOML"),
        (b'{"id": "card"}', "is not valid TOML"),
        (b"a = " + b"[" * 5000, "nested too deeply"),
        (b'id = "card"\n', "name: Field required"),
        (b'id = "card"\nname = "c"\nmemory_bandwidth = 3.35\n', "3.35 has no unit"),
    ],
)
def test_bad_content_is_one_line_that_names_the_file(tmp_path, content, says):
    file = tmp_path / "card.toml"
    file.write_bytes(content)
    with pytest.raises(FileFormatError) as caught:
        read_profile(file)
    assert str(file) in str(caught.value)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_does_no_harm(tmp_path):
    file = tmp_path / "card.toml"
    file.write_bytes(b'\xef\xbb\xbfid = "card"\nname = "c"\n')
    assert read_profile(file).id == "card"


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(FileFormatError, match=r"none\.toml does not exist"):
        load_hardware(tmp_path / "none.toml")
    with pytest.raises(FileFormatError, match=f"is a folder: name one TOML file, or set {ENVIRONMENT}"):
        load_hardware(tmp_path)
    with pytest.raises(FileFormatError, match="is a folder"):
        load_hardware(str(tmp_path))
    with pytest.raises(UnknownNameError, match=r"a path to a \.toml file works too"):
        load_hardware(str(tmp_path / "none"))


def test_profiles_are_found_in_an_installed_package_too(tmp_path, monkeypatch):
    package = tmp_path / "rooflines"
    (package / "hardware_profiles").mkdir(parents=True)
    write(package / "hardware_profiles", "card")
    monkeypatch.setattr(catalogue, "files", lambda _: package)
    assert data_folder() == package / "hardware_profiles"
    assert list_hardware() == ("card",)


@pytest.mark.parametrize(("name", "plain"), [("H100 SXM", "h100sxm"), ("a100_80-GB", "a10080gb"), ("-", "")])
def test_names_are_compared_without_case_and_separators(name, plain):
    assert bare(name) == plain
