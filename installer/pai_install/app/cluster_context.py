"""Context of use cases that need a cluster and no site: on the controller host, and in the cluster itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from pai_install.app.frontend import Frontend, Message, Question
from pai_install.cluster.client import ClusterClient, Impersonation

if TYPE_CHECKING:
    from pai_install.profile.model import ClusterProfile


class ClusterContext(ABC):
    """A cluster, its profile, the user, and a front end."""

    frontend: Frontend

    @property
    @abstractmethod
    def profile(self) -> ClusterProfile:
        """The site without its secrets. Raises PaiError."""

    @property
    @abstractmethod
    def cluster(self) -> ClusterClient:
        """A client of the cluster."""

    @property
    @abstractmethod
    def user(self) -> str:
        """The user of this context: the owner of new jobs, and the author of changes."""

    @abstractmethod
    def submitter(self, user: str) -> Impersonation | None:
        """The identity for checks of a job of `user`, or None if the client is this user."""

    def notify(self, text: str) -> None:
        """Sends a line for a person."""
        self.frontend.notify(Message(text))

    def confirm(self, text: str) -> bool:
        """Asks a question, and says "no changes made" after a refusal."""
        agreed = self.frontend.confirm(Question(text))
        if not agreed:
            self.notify("no changes made")
        return agreed
