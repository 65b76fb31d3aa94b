"""Use case: the first user of a new cluster, who signs in to the console and owns the first job."""

from __future__ import annotations

from pai_install.app.console import console_access
from pai_install.app.context import App
from pai_install.app.users import MakePasswordLink, make_password_link
from pai_install.errors import PaiError
from pai_install.operations.user_add import UserAdd
from pai_install.report.quickstart import FirstAccess, FirstSignIn
from pai_install.report.users import time_text
from pai_install.site.console import console_of
from pai_install.site.groups import administrates, groups_of
from pai_install.site.user_names import near_name


def give_first_access(app: App, group: str) -> FirstAccess:
    """Makes the login on this host an administrator and a member of `group`, with a link for a password.

    Groups and a password that the user has stay. A site without a console gets no user. Raises PaiError.
    """
    console, user = console_of(app.site), near_name(app.user) or "admin"
    if console is None:
        return FirstAccess(user)
    _add(app, user, group)
    sign_in = None
    if console.passwords:
        link = make_password_link(app, MakePasswordLink(name=user))
        sign_in = FirstSignIn(user=user, url=link.url, until=time_text(link.until))
    return FirstAccess(user, console_access(app), sign_in)


def _add(app: App, user: str, group: str) -> None:
    groups = groups_of(app.site.services)
    administrators = [one.name for one in groups if administrates(one)][:1]
    chosen = tuple(dict.fromkeys([*administrators, *(one.name for one in groups if one.name == group)]))
    outcome = app.run(UserAdd(user=user, groups=chosen), agreed=True, shown=False)
    if outcome is None or not outcome.ok:
        raise PaiError(
            f"cannot add user {user}",
            code="first-user-not-added",
            remedy=f"run pai-install user add {user} --group {','.join(chosen)}, which prints the cause",
        )
