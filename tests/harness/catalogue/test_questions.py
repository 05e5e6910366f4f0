"""What a newcomer asks, and the one command whose output answers it."""

from __future__ import annotations

import re

import pytest

from mews.harness.cli import exit_code

QUESTIONS = {
    "what can I run": ("list scenarios", r"(?m)^demo +A pod asks for five GPUs"),
    "run all about moves": ("run --about moves", r"(?m)^passed  demo .*\n(.*\n)*\d\d passed"),
    "which faults has a chassis": (
        "list faults chassis",
        r"(?m)^lying-result .*mews fault add --chassis NAME",
    ),
    "which faults has a host": ("list faults host", r"(?m)^fallen-off-bus +host "),
    "how do I inject XID 79": ("list faults xid", r"mews fault add --host NAME xid device=DEVICE \[xid=79\]"),
    "which boards": ("list profiles board", r"(?m)^V100 +board +Tesla V100-PCIE-32GB, 32 GiB"),
    "which checks": ("list checks", r"(?m)^journal "),
    "which systems": ("list systems", r"(?m)^kubecomp .*mews up --stack kubecomp"),
    "how do I leave them out": ("list systems bare", r"mews up --stack none"),
    "why does my pod wait": ("live --help", r"(?m)^  explain +Explain why a pod is pending, or where its devices are"),
    "which devices are where": ("live --help", r"(?m)^  get table +Show which device is attached to which port"),
    "which versions of Kubernetes": ("list clusters", r"(?m)^embedded .*Kubernetes v1\.34\.\d+"),
    "which dialects": ("list dialects", r"(?m)^redfish .*Redfish"),
    "what is missing on this machine": ("doctor", r"(?m)^  virtual +works"),
    "my image as a process": ("up --help", r"--images FILE +read your images from this file"),
    "is my chassis conformant": (
        "conform --help",
        r"Test a chassis against its API contract; read-only unless",
    ),
    "what is not emulated": ("list ignored", r"(?m)^CertificateSigningRequest +kind +nobody approves or signs it"),
    "how do I stop it": ("--help", r"(?m)^  down +Stop sessions of `mews up`"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_one_command_answers(question, capsys):
    command, answer = QUESTIONS[question]
    assert exit_code(command.split()) == 0
    assert re.search(answer, capsys.readouterr().out)
