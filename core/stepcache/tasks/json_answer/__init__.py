"""JSON answers: one value, verified, adapted and patched key by key."""

from stepcache.tasks.json_answer._task import JsonAnswerTask

__all__ = ["JsonAnswerTask"]
