"""Errors of kubeconfigs: one line each, with the file, the place in it and the way out.

::

    KubeconfigError             a file, or a value in it, cannot be used
      CredentialPluginError     a program that the file names for credentials is missing or fails
"""


class KubeconfigError(ValueError):
    """A kubeconfig that cannot be used: one line with the file and what is wrong."""


class CredentialPluginError(KubeconfigError):
    """A credential plugin that is not on this machine, or that returned no credential."""
