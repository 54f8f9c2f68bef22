"""The auditor's tools, importable by every test here by name."""

import importlib.util
import sys
from pathlib import Path

for _name in (
    "audit_kit",
    "audit_attacks",
    "audit_fuzz",
    "audit_ledger",
    "audit_numbers",
    "audit_firms",
    "audit_persons",
    "audit_ticks",
):
    if _name not in sys.modules:
        _spec = importlib.util.spec_from_file_location(
            _name, Path(__file__).with_name(f"{_name}.py")
        )
        _module = importlib.util.module_from_spec(_spec)
        sys.modules[_name] = _module  # dataclasses look their module up
        _spec.loader.exec_module(_module)
