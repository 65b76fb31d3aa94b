"""Running playbooks. Only `runner` imports ansible_runner."""
