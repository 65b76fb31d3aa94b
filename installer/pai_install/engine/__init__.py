"""Running playbooks. `runner` is the only importer of ansible_runner; `replay` feeds recorded events to tests."""
