"""Running playbooks. Only `runner` imports ansible_runner. `replay` returns recorded events in tests."""
