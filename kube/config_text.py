"""Configuration files of components, as read from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def read_config(file: Path) -> Any:
    """Return the value of a YAML file.

    Raises ValueError: one line with the file and what is wrong.
    """
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: not a text file in UTF-8") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ValueError(f"{file}{f':{mark.line + 1}' if mark else ''}: not YAML: {error.problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
