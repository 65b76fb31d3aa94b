"""Running playbooks: `runner` alone imports ansible_runner; `replay` feeds recorded events to tests."""
