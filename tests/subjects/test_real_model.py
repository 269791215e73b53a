"""A real language model behind a real server: a tiny one, with weights that were drawn."""

from __future__ import annotations

import json
import os
import socket
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.external import finish, start, wait_until

pytest.importorskip("aiohttp")
SIGNS = ["<end>", *string.digits, *string.ascii_letters, *string.punctuation]
TEMPLATE = "{% for each in messages %}{{ each['content'] }}\n{% endfor %}"
CONFIG = """
version = 1
[subject]
kind = "chat"
url = "http://127.0.0.1:{port}/v1"
model = "{model}"
parameters = {{ temperature = {temperature}, max_tokens = 1 }}
favourable = ["granted"]
concurrency = 2
max_undecided = 1
[subject.labels]
granted = {granted}
refused = {refused}
[subject.prompt]
system = "Grant it?"
user = "{{sex|woman:She,man:He}} is {{age}}."
[inputs]
sex = {{ values = ["woman", "man"], protected = true }}
age = {{ min = 18, max = 80 }}
[run]
seed = 1
ahead = false
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tokenizer of single signs and a Llama of two small layers."""
    torch = pytest.importorskip("torch", reason="PyTorch makes the model")
    transformers = pytest.importorskip("transformers", reason="transformers serves the model")
    tokenizers = pytest.importorskip("tokenizers")
    if not pytest.importorskip("transformers.utils.import_utils").is_serve_available():
        pytest.skip("`transformers serve` needs transformers[serving]")
    folder = tmp_path_factory.mktemp("model")
    numbers = {sign: number for number, sign in enumerate(SIGNS)}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(numbers, unk_token="<end>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    words.decoder = tokenizers.decoders.Fuse()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, eos_token="<end>", pad_token="<end>", chat_template=TEMPLATE
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    shape = transformers.LlamaConfig(
        vocab_size=len(SIGNS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=128,
        eos_token_id=0,
        pad_token_id=0,
        initializer_range=0.15,
    )
    llama = transformers.LlamaForCausalLM(shape)
    llama.generation_config.do_sample = True
    llama.generation_config.suppress_tokens = [0]
    llama.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def port(model: Path) -> Iterator[int]:
    """Where `transformers serve` answers."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [sys.executable, "-c", "from transformers.cli.transformers import main; main()"]
    options = ["serve", "--device", "cpu", "--port", str(port), str(model)]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    offline = os.environ | {"HF_HUB_OFFLINE": "1"}
    with subprocess.Popen([*command, *options], env=offline, **quiet) as server:
        try:
            wait_until(lambda: server.poll() is not None or is_there(port), 300)
            assert server.poll() is None
            yield port
        finally:
            server.kill()


def is_there(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/health") as reply:
            return reply.status == 200
    except URLError:
        return False


def score(folder: Path, port: int, model: Path, temperature: float, most: int) -> Any:
    granted, refused = string.digits + string.ascii_lowercase, "!#$%&()+,-./:;<=>@[]^_{|}~"
    text = CONFIG.format(
        port=port, model=model, temperature=temperature, granted=list(granted),
        refused=list(refused),
    )  # fmt: skip
    (folder / "themis.toml").write_text(text)
    asked = ["score", str(folder / "themis.toml"), "--measure", "excess", "--json"]
    return json.loads(finish(start(*asked, "--max-executions", str(most)), expect=4)[0])


@pytest.mark.slow
def test_a_real_model_is_random_or_not_as_its_temperature_says_and_is_asked_once(
    tmp_path: Path, port: int, model: Path
) -> None:
    certain = score(tmp_path, port, model, 0, 60)
    (measured,) = certain["scores"]
    assert measured["within"]["score"] == 0
    part = score(tmp_path, port, model, 1, 60)
    whole = score(tmp_path, port, model, 1, 120)
    (measured,) = whole["scores"]
    assert measured["within"]["score"] > 0
    assert whole["cache_hits"] == part["executions"] > 0
    assert 0 < whole["executions"] <= 120 - part["executions"]
