"""What a document may say of itself, by field."""

from collections.abc import Mapping, Sequence

MetadataScalar = str | int | float | bool | None
MetadataValue = MetadataScalar | Sequence[MetadataScalar]
Metadata = Mapping[str, MetadataValue]
