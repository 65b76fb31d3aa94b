"""A module that finds things, for the tests."""

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """Judges the node that it is given."""
    module = AnsibleModule(argument_spec={"node": {"type": "str"}}, supports_check_mode=True)
    node = module.params["node"]
    findings = [
        {"id": "node-ready", "verdict": "PASS", "subject": node, "message": "the node is Ready"},
        {"id": "swap-off", "verdict": "FAIL" if node == "b" else "PASS", "message": "swap", "value": "2 GiB"},
    ]
    module.exit_json(changed=False, findings=findings)


if __name__ == "__main__":
    main()
