"""Statements that count what others only say."""

MISCOUNTED = """
    SELECT c.key, c.name, c.n_documents, c.n_passages, c.n_tokens, c.size_bytes,
        c.max_document_key, c.max_passage_key,
        count(d.key) AS counted_n_documents, coalesce(sum(d.n_passages), 0) AS counted_n_passages,
        coalesce(sum(d.n_tokens), 0) AS counted_n_tokens,
        coalesce(sum(d.size_bytes), 0) AS counted_size_bytes,
        coalesce(max(d.key), 0) AS used_max_document_key,
        coalesce((SELECT max(key) FROM passage_vectors WHERE collection_key = c.key), 0)
            AS used_max_passage_key
    FROM collections c LEFT JOIN documents d ON d.collection_key = c.key
    WHERE c.dropped_at IS NULL GROUP BY c.key
"""
"""A row for each collection: its counters and marks, and what they should be or reach."""

SPENT_KEYS = """
    SELECT noun, key, used FROM (
        SELECT noun, key, CASE noun
            WHEN 'document' THEN (SELECT coalesce(max(key), 0) FROM documents)
            WHEN 'passage' THEN (SELECT coalesce(max(key), 0) FROM passages) END AS used
        FROM last_keys) WHERE key < used
"""
"""Nouns whose next key would be one that is in use."""

RECOUNT = (
    """
    UPDATE collections AS c SET
        n_documents = (SELECT count(*) FROM documents WHERE collection_key = c.key),
        n_passages = (SELECT coalesce(sum(n_passages), 0) FROM documents WHERE collection_key = c.key),
        n_tokens = (SELECT coalesce(sum(n_tokens), 0) FROM documents WHERE collection_key = c.key),
        size_bytes = (SELECT coalesce(sum(size_bytes), 0) FROM documents WHERE collection_key = c.key),
        max_document_key = max(max_document_key,
            (SELECT coalesce(max(key), 0) FROM documents WHERE collection_key = c.key)),
        max_passage_key = max(max_passage_key,
            (SELECT coalesce(max(key), 0) FROM passage_vectors WHERE collection_key = c.key))
    """,
    "UPDATE last_keys SET key = max(key, (SELECT coalesce(max(key), 0) FROM documents)) "
    "WHERE noun = 'document'",
    "UPDATE last_keys SET key = max(key, (SELECT coalesce(max(key), 0) FROM passages)) "
    "WHERE noun = 'passage'",
)

INCOMPLETE = (
    (
        "have not as many passages as they should",
        "SELECT d.collection_key, c.name, d.key FROM documents d "
        "JOIN collections c ON c.key = d.collection_key AND c.dropped_at IS NULL "
        "LEFT JOIN (SELECT document_key, count(*) AS n FROM passages GROUP BY document_key) p "
        "ON p.document_key = d.key WHERE d.n_passages != coalesce(p.n, 0) ORDER BY d.key",
    ),
    (
        "have passages without their vectors",
        "SELECT DISTINCT d.collection_key, c.name, d.key FROM passages p "
        "JOIN documents d ON d.key = p.document_key "
        "JOIN collections c ON c.key = d.collection_key AND c.dropped_at IS NULL "
        "LEFT JOIN passage_vectors v ON v.key = p.key "
        "WHERE v.key IS NULL OR v.document_key != p.document_key OR v.collection_key != d.collection_key "
        "ORDER BY d.key",
    ),
    (
        "have vectors of a wrong size",
        "SELECT DISTINCT d.collection_key, c.name, d.key FROM documents d "
        "JOIN collections c ON c.key = d.collection_key AND c.dropped_at IS NULL "
        "WHERE EXISTS (SELECT 1 FROM document_vectors v WHERE v.key = d.key "
        "AND length(v.vector) != 2 * c.dimensions) "
        "OR EXISTS (SELECT 1 FROM passages p JOIN passage_vectors v ON v.key = p.key "
        "WHERE p.document_key = d.key AND length(v.vector) != 2 * c.dimensions) ORDER BY d.key",
    ),
    (
        "have no vector of their own",
        "SELECT d.collection_key, c.name, d.key FROM documents d "
        "JOIN collections c ON c.key = d.collection_key AND c.dropped_at IS NULL "
        "LEFT JOIN document_vectors v ON v.key = d.key "
        "WHERE v.key IS NULL OR v.collection_key != d.collection_key ORDER BY d.key",
    ),
)
"""What is wrong, and a statement that gives (collection key, its name, document key)."""
