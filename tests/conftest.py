"""What every test shares: seeds, kernels in both forms, and the real data sets where they are."""

from __future__ import annotations

import os
import secrets
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from longtail import native

settings.register_profile("longtail", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("longtail")

_BESIDE_THE_PROJECT = Path(__file__).resolve().parents[1].parent / "shared" / "data"
if "LONGTAIL_DATA" not in os.environ and _BESIDE_THE_PROJECT.is_dir():
    os.environ["LONGTAIL_DATA"] = str(_BESIDE_THE_PROJECT)


def pytest_configure(config: pytest.Config) -> None:
    """Keep what tests cache apart from the user's; parallel workers share the folder of the process that began them."""
    if "LONGTAIL_CACHE" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="longtail-cache-")
        os.environ["LONGTAIL_CACHE"] = folder.name
        config.add_cleanup(folder.cleanup)
        config.add_cleanup(lambda: os.environ.pop("LONGTAIL_CACHE"))


@pytest.fixture
def benchmark_data() -> Callable[[str], Path]:
    """The folder of a real data set by name; the test is skipped where it is absent."""

    def find(name: str) -> Path:
        for folder in os.environ.get("LONGTAIL_DATA", "").split(os.pathsep):
            if folder and (Path(folder) / name).is_dir():
                return Path(folder) / name
        pytest.skip(f"the data set {name} is not in $LONGTAIL_DATA nor beside the project")

    return find


@pytest.fixture(scope="session")
def object_store() -> Iterator[str]:
    """The address of a server on this machine that speaks S3."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(object_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty bucket; the environment has what one needs to use it, and the cache is empty."""
    environment = {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "kept secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": object_store,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "LONGTAIL_CACHE": str(tmp_path / "cache"),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    name = f"tags-{secrets.token_hex(4)}"
    pytest.importorskip("s3fs").S3FileSystem().mkdir(name)
    return f"s3://{name}"


@pytest.fixture(params=["native", "twin"])
def kernels(request: pytest.FixtureRequest) -> object:
    """The kernels in both forms; the native one is skipped where it was not built."""
    if request.param == "twin":
        return native.twins
    if not native.is_native():
        pytest.skip("the native kernels are not built here")
    return native.kernels


@pytest.fixture(params=[0, 1])
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Programs started here hear interrupts, also where a shell has started the tests in the background, without."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
