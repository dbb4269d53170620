"""What each kind of file becomes, on small files made here."""

import pytest

from app.domain import Document
from app.errors import BadFile
from indexer.reading import SUFFIXES
from indexer.reading.files import READERS, read_file
from tests.indexer import made_files as made


def read_one(name: str, body: bytes, *, media_type: str | None = None) -> Document:
    [document] = read_file(name, body, media_type=media_type)
    return document


def refusal(name: str, body: bytes, *, media_type: str | None = None) -> str:
    with pytest.raises(BadFile) as caught:
        read_file(name, body, media_type=media_type)
    return str(caught.value)


def test_every_allowed_ending_has_a_reader() -> None:
    assert set(SUFFIXES.values()) == set(READERS)


def test_the_id_is_the_name_as_given() -> None:
    assert read_one("../a folder/Ä.TXT", b"text").id == "../a folder/Ä.TXT"


def test_the_media_type_tells_the_kind_where_the_name_does_not() -> None:
    assert read_one("page", b"<p>text</p>", media_type="text/html; charset=utf-8").text == "text"


@pytest.mark.parametrize("name", ["a.exe", "a.rtf", "README", ".pdf", ""])
def test_an_unknown_kind_is_refused_with_those_allowed(name: str) -> None:
    assert ".docx" in refusal(name, b"text")


@pytest.mark.parametrize("suffix", sorted(SUFFIXES))
def test_an_empty_file_is_refused(suffix: str) -> None:
    assert refusal(f"a{suffix}", b"") == f"a{suffix}: the file is empty; send one with text"


@pytest.mark.parametrize("suffix", sorted(set(SUFFIXES) - {".txt", ".text", ".md", ".markdown"}))
def test_a_file_of_blanks_is_refused(suffix: str) -> None:
    assert refusal(f"a{suffix}", b" \n ").startswith(f"a{suffix}: ")


@pytest.mark.parametrize("suffix", [".pdf", ".docx", ".pptx", ".xlsx", ".xls", ".ods", ".epub"])
@pytest.mark.parametrize(
    "body", [b"no such file", b"PK\x03\x04 damaged", b"%PDF-1.7\n\xff\xff", b"\0" * 1000]
)
def test_a_damaged_file_is_refused(suffix: str, body: bytes) -> None:
    assert "damaged" in refusal(f"a{suffix}", body)


def test_a_file_that_was_cut_off_is_refused() -> None:
    whole = {
        "a.docx": made.docx(made.word_paragraph("text " * 1000)),
        "a.pptx": made.presentation([("title", "text", "")]),
        "a.xlsx": made.workbook({"sheet": {(0, 0): "text"}}),
        "a.epub": made.epub(["text"]),
    }
    for name, body in whole.items():
        assert "damaged" in refusal(name, body[: len(body) // 2])


# Text -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le"])
def test_text_in_a_unicode_encoding_is_read_and_its_mark_removed(encoding: str) -> None:
    mark = b"\xff\xfe" if encoding == "utf-16-le" else b""
    assert read_one("a.txt", mark + "naïve 日本".encode(encoding)).text == "naïve 日本"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Für die Übergröße gäbe es „schöne“ Möglichkeiten, sagte der Verkäufer zögernd."),
        ("shift_jis", "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"),
        ("koi8-r", "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива."),
    ],
)
def test_the_encoding_of_old_text_is_told(encoding: str, text: str) -> None:
    assert read_one("a.txt", text.encode(encoding)).text == text


def test_line_ends_become_line_feeds() -> None:
    assert read_one("a.txt", b"one\r\ntwo\rthree\n").text == "one\ntwo\nthree\n"


def test_binary_data_is_no_text() -> None:
    assert "not text but binary data" in refusal("a.txt", bytes(range(256)) * 10)


def test_markdown_stays_as_it_is_with_its_first_heading_as_title() -> None:
    text = "```\n# not this\n```\nIntro\n\n# The *title* #\n\n| a | b |\n"
    assert read_one("a.md", text.encode()) == Document("a.md", text, title="The *title*")


def test_front_matter_becomes_title_and_metadata() -> None:
    body = b"---\ntitle: A title\ndate: 2024-05-01\ntags: [x, y]\ndeep: {a: 1}\n---\n# Heading\n"
    expected = Document(
        "a.md", "# Heading\n", title="A title", metadata={"date": "2024-05-01", "tags": ["x", "y"]}
    )
    assert read_one("a.md", body) == expected


@pytest.mark.parametrize("text", ["---\nA rule before\n---\ntext\n", "---\na: [\n---\ntext\n"])
def test_text_between_rules_is_no_front_matter(text: str) -> None:
    assert read_one("a.md", text.encode()).text == text


# Web pages ------------------------------------------------------------------------------------------


def html(body: str) -> str:
    return read_one("a.html", body.encode()).text


def test_blocks_of_a_page_are_apart_and_inline_elements_are_not() -> None:
    page = (
        "<h1>One</h1><p>Two <b>b</b>old<br>three</p><ul><li>four</li><li>fi<i>v</i>e</li></ul><div>six</div>"
    )
    assert html(page) == "One\n\nTwo bold\nthree\n\nfour\nfive\n\nsix"


def test_cells_of_a_table_row_stand_on_one_line() -> None:
    page = "<table><tr><th>a</th><th>b</th></tr><tr><td> 1 </td><td></td><td>2</td></tr></table>"
    assert html(page) == "a | b\n1 | 2"


def test_white_space_collapses_except_in_preformatted_text() -> None:
    assert html("<p> a \n b </p><pre>x\n   y</pre>") == "a b\n\nx\n   y"


def test_what_is_not_shown_is_left_out() -> None:
    hidden = "<script>s</script><style>s</style><nav>n</nav><p hidden>h</p><!-- c --><template>t</template>"
    assert html(f"{hidden}<p>shown</p>") == "shown"


def test_only_the_main_element_is_read_where_there_is_one() -> None:
    assert html("<header>Menu</header><main><p>Text</p></main><footer>Imprint</footer>") == "Text"


def test_the_title_of_a_page_is_its_title_element_or_first_heading() -> None:
    titled = b"<title> A\n title </title><h1>Heading</h1>"
    assert read_one("a.html", titled).title == "A title"
    assert read_one("a.html", titled.replace(b"<title> A\n title </title>", b"")).title == "Heading"


def test_the_encoding_a_page_declares_is_used() -> None:
    assert read_one("a.html", '<meta charset="koi8-r"><p>мир'.encode("koi8-r")).text == "мир"


def test_entities_are_characters_and_own_definitions_are_not_expanded() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><p>&lt;&amp;&auml;&b;</p>'
    assert html(bomb).endswith("<&ä&b;")


@pytest.mark.parametrize("markup", [b"<b>" * 20_000, b"<div>" * 200_000, b"<x-y>" * 6_000])
def test_a_page_nested_too_deep_is_refused(markup: bytes) -> None:
    """Parsing the second one would take minutes."""
    assert "nested" in refusal("a.html", markup + b"text")


def test_a_page_of_many_elements_side_by_side_is_read() -> None:
    document = read_one("a.html", b"<p>one<br><li>two" + b"<div class='x'><span>word</span></div>" * 30_000)
    assert document.text.count("word") == 30_000


# PDF ------------------------------------------------------------------------------------------------


def test_pages_of_a_pdf_begin_at_their_page_starts() -> None:
    document = read_one("a.pdf", made.pdf(["First page.", "goes on", "", "Last page"], title="A title"))
    assert document == Document(
        "a.pdf", "First page.\n\ngoes on\nLast page", title="A title", page_starts=(0, 13, 20, 21)
    )


def test_words_broken_at_line_ends_are_joined_as_the_rest_of_the_file_spells_them() -> None:
    broken = ") Tj 0 -14 Td (".join(["a multi-", "agent has a con-", "firmation in a chat-", "window here"])
    text = read_one("a.pdf", made.pdf([broken, "The window of this chat."])).text
    assert "multiagent has a confirmation in a chat-window here" in text.replace("\n", " ")


@pytest.mark.parametrize("title", ["", "untitled", "report.docx", r"\(anonymous\)"])
def test_a_title_that_a_program_wrote_is_none(title: str) -> None:
    assert read_one("a.pdf", made.pdf(["text"], title=title)).title is None


def test_a_pdf_without_text_is_refused_as_a_scan() -> None:
    assert "no text layer on 2 pages" in refusal("a.pdf", made.pdf(["", ""]))


# Office ---------------------------------------------------------------------------------------------


def test_word_headings_paragraphs_lists_and_tables_are_read_in_order() -> None:
    cell = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    table = f"<w:tbl><w:tr>{cell.format('a')}{cell.format('b')}</w:tr></w:tbl>"
    body = made.word_paragraph("One") + table + made.word_paragraph("Two")
    assert read_one("a.docx", made.docx(body, title="A title")) == Document(
        "a.docx", "One\n\na | b\n\nTwo", title="A title"
    )


def test_formulas_in_word_keep_their_characters() -> None:
    formula = "<m:oMathPara><m:oMath><m:r><m:t>E=</m:t></m:r><m:r><m:t>mc</m:t></m:r></m:oMath></m:oMathPara>"
    body = f"<w:p><w:r><w:t>Thus </w:t></w:r>{formula}<w:r><w:t> holds</w:t></w:r></w:p>"
    assert read_one("a.docx", made.docx(body)).text == "Thus E=mc holds"


def test_slides_are_pages_with_title_text_and_notes() -> None:
    document = read_one("a.pptx", made.presentation([("One", "alpha", "remember"), ("Two", "beta", "")]))
    assert document.text == "One\n\nalpha\n\nremember\n\nTwo\n\nbeta"
    assert document.page_starts == (0, document.text.index("Two"))


def test_sheets_are_pages_and_every_row_names_its_columns() -> None:
    cells: dict[tuple[int, int], str | int | float] = {
        (0, 0): "Name", (0, 1): "Age", (1, 0): "Ada", (1, 1): 36, (2, 0): "Alan", (2, 1): 41.5,
    }  # fmt: skip
    document = read_one("a.xlsx", made.workbook({"People": cells, "Empty": {}, "Other": {(3, 3): "x"}}))
    assert document.text == "People\n\nName: Ada; Age: 36\nName: Alan; Age: 41.5\n\nOther\n\nx"
    assert document.page_starts == (0, 48, 50)


def test_chapters_of_a_book_are_read_in_the_order_of_its_spine() -> None:
    book = made.epub(["<h1>One</h1><p>alpha</p>", "<h1>Two</h1><p>beta</p>"])
    assert read_one("a.epub", book) == Document("a.epub", "One\n\nalpha\n\nTwo\n\nbeta", title="A book")


@pytest.mark.parametrize("suffix", [".docx", ".pptx", ".epub"])
def test_an_encrypted_office_file_is_refused(suffix: str) -> None:
    """Office puts encrypted files into the container of its old formats."""
    assert "protected by a password" in refusal(
        f"a{suffix}", bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 2000
    )


@pytest.mark.parametrize("suffix", [".docx", ".pptx", ".xlsx", ".ods", ".epub"])
def test_an_archive_that_unpacks_to_too_much_is_refused(suffix: str) -> None:
    bomb = made.archive({f"{i}.bin": bytes(2**24) for i in range(3)})
    assert "it unpacks to 50,331,648 bytes" in refusal(f"a{suffix}", bomb)


@pytest.mark.parametrize("suffix", [".docx", ".pptx", ".xlsx", ".epub"])
def test_xml_entity_definitions_are_refused(suffix: str) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>'
    assert "defines XML entities in 'word/document.xml'" in refusal(
        f"a{suffix}", made.archive({"word/document.xml": bomb})
    )


# Tables and records ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "mark"), [("a.csv", ","), ("a.csv", ";"), ("a.csv", "|"), ("a.tsv", "\t")])
def test_rows_with_a_text_column_are_documents(name: str, mark: str) -> None:
    rows = ["ID;Title;Text;year", 'x1;One;"alpha ""a""";1999', ";Two;beta;", "x3;;   ;"]
    body = "\r\n".join(row.replace(";", mark) for row in rows).encode()
    assert read_file(name, body) == [
        Document(f"{name}#x1", 'alpha "a"', title="One", metadata={"year": "1999"}),
        Document(f"{name}#2", "beta", title="Two"),
    ]


def test_a_table_without_text_column_is_one_document() -> None:
    assert read_one("a.csv", b"Name,Age\nAda,36\nAlan,\n").text == "Name: Ada; Age: 36\nName: Alan"


def test_a_table_without_header_is_one_document() -> None:
    assert read_one("a.csv", b"Ada,36\nAlan,41\n").text == "Ada | 36\nAlan | 41"


def test_lines_of_json_are_documents() -> None:
    first = b'{"_id": 7, "text": "alpha", "title": null, "n": [1, "x"], "deep": {"a": 1}}'
    body = first + b'\n\n{"content": "beta"}\n'
    assert read_file("a.jsonl", body) == [
        Document("a.jsonl#7", "alpha", metadata={"n": [1, "x"], "deep": '{"a": 1}'}),
        Document("a.jsonl#2", "beta"),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "line 2: not valid JSON"),
        (b"[1]", "line 2: not a JSON object"),
        (b'{"title": "t"}', "record 2 has no text"),
        (b'{"text": 1}', "record 2 has no text"),
        (b'{"text": "t", "n": NaN}', "NaN is no JSON number"),
        (b"[" * 100_000, "line 2: not valid JSON"),
    ],
)
def test_a_bad_line_of_json_is_named(line: bytes, message: str) -> None:
    assert message in refusal("a.jsonl", b'{"text": "t"}\n' + line)


@pytest.mark.parametrize(
    "pattern", ['[{"text": "a"}, {"text": "b"}]', '{"documents": [{"text": "a"}, {"text": "b"}]}']
)
def test_a_json_list_of_texts_is_documents(pattern: str) -> None:
    assert [d.id for d in read_file("a.json", pattern.encode())] == ["a.json#1", "a.json#2"]


@pytest.mark.parametrize("text", ['{"a": [1, 2]}', '[{"text": "a"}, {"title": "b"}]', '"just text"'])
def test_other_json_is_one_document_as_it_is(text: str) -> None:
    assert read_one("a.json", text.encode()) == Document("a.json", text)
