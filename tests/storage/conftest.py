import pytest

for module in (
    "rows_classifiers_contract",
    "rows_contract",
    "rows_feed_contract",
    "rows_filters_contract",
    "rows_jobs_contract",
    "consistency",
    "index_contract",
    "index_filters_contract",
    "exhaustive",
):
    pytest.register_assert_rewrite(f"tests.storage.{module}")
