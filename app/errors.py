"""Everything that can go wrong, without HTTP in it. `app/api/problems.py` maps each leaf to a status.

BifocalError
|-- InvalidInput                  the caller's fault; the message says what, where and what is allowed
|   |-- BlankText                 empty or white space only
|   |-- TextTooLong               more tokens than the model takes, and truncation was refused
|   |-- BadDocument               id, text, title or metadata outside what is allowed
|   |-- BadFile                   unreadable, encrypted, unsupported or damaged file
|   |-- BadVector                 an embedding that is not finite or is zero
|   |-- BadExamples               a set of labelled examples from which no classifier can be trained
|   |-- BadFilter                 a condition on metadata that means nothing or is too large
|   `-- BadCursor                 a cursor that this listing did not give out
|-- NotFound
|   |-- CollectionNotFound
|   |-- AliasNotFound
|   |-- DocumentNotFound
|   |-- ClassifierNotFound        of this name, or of this version
|   |-- JobNotFound
|   `-- KeyNotFound
|-- Unauthenticated               no key, or none that counts
|-- Forbidden                     a key that may not do this
|-- RateLimited                   too many requests of one caller; retry after `retry_after_s`
|-- Conflict
|   |-- CollectionExists          with other settings
|   |-- NameTaken                 a collection and an alias cannot have one name
|   |-- CollectionInUse           something depends on it: aliases lead to it, it is a standby or has one
|   |-- StandbyMissing            nothing to roll back to
|   |-- FingerprintMismatch       the collection or classifier was made by another model or splitter
|   |-- RankingChanged            a cursor's earlier pages are no longer the first of the ranking
|   |-- JobFinished               cannot be cancelled any more
|   `-- ModelNotConfigured        no model has the role that the request needs; says how to give it one
|-- JobFailed                     a job that a request waited for ended without its result
|-- Overloaded                    queue full; retry after `retry_after_s`
|-- ModelUnavailable              files missing, digest wrong, or runtime not installed
|-- TrainingFailed                diverged, interrupted by a full disk, or its data allow no training
`-- StorageError
    |-- StorageFull               no space left; nothing was written
    |-- StorageReadOnly
    |-- StorageDamaged            a file of the truth is not what it should be
    `-- SchemaTooNew              written by a newer version
"""


class BifocalError(Exception):
    """Root of all errors raised on purpose. The message is written for the caller of the service."""


class InvalidInput(BifocalError):
    """`where` names the offending part of the input, as a path such as ("texts", 3)."""

    def __init__(self, message: str, *, where: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.where = where


class BlankText(InvalidInput):
    pass


class TextTooLong(InvalidInput):
    def __init__(
        self, message: str, *, n_tokens: int, max_tokens: int, where: tuple[str | int, ...] = ()
    ) -> None:
        super().__init__(message, where=where)
        self.n_tokens = n_tokens
        self.max_tokens = max_tokens


class BadDocument(InvalidInput):
    pass


class BadFile(InvalidInput):
    pass


class BadVector(InvalidInput):
    pass


class BadExamples(InvalidInput):
    pass


class BadFilter(InvalidInput):
    pass


class BadCursor(InvalidInput):
    pass


class NotFound(BifocalError):
    pass


class CollectionNotFound(NotFound):
    pass


class AliasNotFound(NotFound):
    pass


class DocumentNotFound(NotFound):
    pass


class ClassifierNotFound(NotFound):
    pass


class JobNotFound(NotFound):
    pass


class KeyNotFound(NotFound):
    pass


class Unauthenticated(BifocalError):
    pass


class Forbidden(BifocalError):
    pass


class RateLimited(BifocalError):
    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Conflict(BifocalError):
    pass


class CollectionExists(Conflict):
    pass


class NameTaken(Conflict):
    pass


class CollectionInUse(Conflict):
    pass


class StandbyMissing(Conflict):
    pass


class FingerprintMismatch(Conflict):
    pass


class RankingChanged(Conflict):
    pass


class JobFinished(Conflict):
    pass


class ModelNotConfigured(Conflict):
    pass


class JobFailed(BifocalError):
    pass


class Overloaded(BifocalError):
    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelUnavailable(BifocalError):
    pass


class TrainingFailed(BifocalError):
    pass


class StorageError(BifocalError):
    pass


class StorageFull(StorageError):
    pass


class StorageReadOnly(StorageError):
    pass


class StorageDamaged(StorageError):
    pass


class SchemaTooNew(StorageError):
    pass
