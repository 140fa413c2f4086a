"""The model hub: what is in its local cache, can it be reached, fetch what is missing."""

from __future__ import annotations

import os
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from cmm.grammar.errors import CmmError

FILES = ["*.json", "*.safetensors", "*.jinja", "merges.txt", "vocab.json"]
TOKENIZER_FILES = ["tokenizer.json", "tokenizer_config.json", "*.jinja", "config.json"]
ANSWER_SECONDS = 3.0  # huggingface_hub by itself takes 23 s of retries to find out


def cached_model(repository: str, *, tokenizer_only: bool = False) -> Path | None:
    """The folder of a repository in the local cache, if weights and tokenizer are there."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(repository, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None
    return folder if has_files(folder, tokenizer_only=tokenizer_only) else None


def has_files(folder: Path, *, tokenizer_only: bool = False) -> bool:
    """Does a model folder hold what a run needs?"""
    needed = ["tokenizer.json"] if tokenizer_only else ["tokenizer.json", "config.json"]
    found = all((folder / name).is_file() for name in needed)
    return found and (tokenizer_only or any(folder.glob("*.safetensors")))


def hub_answers() -> bool:
    """Is the hub reachable? Known after a few seconds, whatever the network does."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE or os.environ.get("TRANSFORMERS_OFFLINE") == "1":
        return False
    answers: list[bool] = []

    def ask() -> None:
        try:
            if not constants.ENDPOINT.startswith(("https://", "http://")):
                raise ValueError(constants.ENDPOINT)
            request = urllib.request.Request(constants.ENDPOINT, method="HEAD")
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS):  # nosec B310
                answers.append(True)
        except urllib.error.HTTPError as error:
            answers.append(error.code < 500)
        except (OSError, ValueError):
            answers.append(False)

    # A thread, because looking up a name has no time limit of its own.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(ANSWER_SECONDS + 1)
    return bool(answers and answers[0])


def download_model(repository: str, *, tokenizer_only: bool = False) -> Path:
    """Fetch a repository into the hub's cache; the hub's library resumes and verifies."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
    )

    patterns = TOKENIZER_FILES if tokenizer_only else FILES
    try:
        token = hub_token(os.environ, Path(".env"))
        folder = Path(snapshot_download(repository, allow_patterns=patterns, token=token))
    except GatedRepoError as error:
        raise gated(repository) from error
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise CmmError(
            f'the model "{repository}" could not be fetched: {str(error).splitlines()[0]}',
            advice="cmm models lists those that are known",
        ) from error
    if not has_files(folder, tokenizer_only=tokenizer_only):
        raise CmmError(f'the model "{repository}" lacks tokenizer.json or safetensors weights')
    return folder


def gated(repository: str) -> CmmError:
    """What to say of a model that is not given to everybody."""
    return CmmError(
        f'the model "{repository}" is gated: the hub gives it to those who accepted its licence',
        advice="accept it on the model's page, and put your token into the environment variable "
        "HF_TOKEN or as HF_TOKEN=... into a file .env here",
    )


def hub_token(environment: Mapping[str, str], file: Path) -> str | None:
    """The token for gated models: of the environment, else of a `.env` file.

    >>> hub_token({"HF_TOKEN": "hf_x"}, Path("nowhere/.env"))
    'hf_x'
    """
    if environment.get("HF_TOKEN"):
        return environment["HF_TOKEN"]
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    pairs = (line.strip().removeprefix("export ").partition("=") for line in lines)
    found = (value.strip().strip("'\"") for name, _, value in pairs if name.strip() == "HF_TOKEN")
    return next(filter(None, found), None)
