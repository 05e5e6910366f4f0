"""The report as a file, without a browser: one file, nothing to load, no user's text as markup."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

import mews.harness.report.html as html
from mews.harness.journal import Journal
from mews.harness.package import sources
from mews.harness.report.junit import junit_xml
from mews.harness.report.live_page import live_file, live_page
from mews.harness.report.page import inline_json, picture_file, policy_of
from mews.harness.report.run import Run
from mews.harness.scenario.result import Result
from mews.harness.terminal import escaped

EVIL = "</script><script>alert(1)</script><!-- &amp; \u2028"


def a_run(**fields):
    journal = Journal(lambda: 1.5)
    journal.write("api", f"pod/default/{EVIL}", "created", uid="u", requests={"x": 1})
    return Run(Result(EVIL, EVIL, "embedded", "virtual", 7, "failed", EVIL, 1.5, 0.1, **fields), journal.lines())


class Page(HTMLParser):
    """The elements of a page, with the text of those whose text is not markup."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        self.elements.append((f"/{tag}", {}))

    def handle_data(self, text):
        if self.elements and self.elements[-1][0] in ("script", "style"):
            self.texts.append((*self.elements[-1], text))

    def data(self, name):
        return "".join(text for _, attributes, text in self.texts if attributes.get("id") == name)

    def policy(self):
        [content] = [a["content"] for _, a in self.elements if a.get("http-equiv") == "Content-Security-Policy"]
        return dict(part.strip().partition(" ")[::2] for part in content.split(";"))


def test_what_users_wrote_is_data_and_never_an_element():
    page = Page(html.html_page([a_run(report=EVIL)]))
    assert [tag for tag, _ in page.elements].count("script") == 3  # two of data, one of ours
    data = json.loads(page.data("mews-data"))
    assert (data["runs"][0]["scenario"], data["runs"][0]["reason"], data["runs"][0]["report"]) == (escaped(EVIL),) * 3
    assert json.loads(page.data("lines-0"))[0]["actor"] == f"pod/default/{escaped(EVIL)}"


@pytest.mark.parametrize("page", [html.html_page([a_run()]), live_page()], ids=["report", "live"])
def test_nothing_is_loaded_and_only_our_own_scripts_may_run(page):
    parsed = Page(page)
    links = [a.get(name, "") for _, a in parsed.elements for name in ("src", "href") if a.get(name)]
    assert [link for link in links if not link.startswith(("data:", "#"))] == []
    assert [name for _, a in parsed.elements for name in a if name.startswith("on") or name == "style"] == []
    addresses = set(re.findall(r"https?://[\w.]+", page))
    assert addresses <= {"http://www.w3.org"}  # SVG's namespace, which nobody asks
    [(script,), (style,)] = (
        [text for tag, a, text in parsed.texts if tag == name and "type" not in a] for name in ("script", "style")
    )
    policy = parsed.policy()
    for kind, text in (("script-src", script), ("style-src", style)):
        assert policy[kind] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == ("'self'" if page == live_page() else "'none'")


def test_text_is_only_ever_set_as_text():
    """The scripts know no way to make markup of a string."""
    for name, path in sources():
        if name.endswith(".js"):
            found = re.findall(
                r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", path.read_text()
            )
            assert found == [], name


def test_scripts_can_stand_in_a_page_as_they_are():
    names = [name.rpartition("/")[2] for name, _ in sources() if "/report/picture/" in name]
    assert {"model.js", "timeline.js", "picture.css", "live.js"} <= set(names)
    for name in names:
        assert not re.search(r"</(script|style)|<!--", picture_file(name), re.IGNORECASE), name
        assert len(picture_file(name).splitlines()) <= 450, name


def test_long_journals_are_packed_and_the_same_bytes_each_time(monkeypatch):
    plain = html.html_page([a_run()])
    monkeypatch.setattr(html, "PLAIN_LINES", 0)
    packed = html.html_page([a_run()])
    assert packed == html.html_page([a_run()]) != plain
    lines = json.loads(gzip.decompress(base64.b64decode(Page(packed).data("lines-0"))))
    assert lines == json.loads(Page(plain).data("lines-0"))


def test_inlined_json_is_the_same_value_and_ends_no_element():
    text = inline_json({"a": [EVIL, 1.5, None]})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"a": [escaped(EVIL), 1.5, None]}


def test_readers_without_scripts_get_verdict_and_reason():
    page = html.html_page([a_run()])
    text = page[page.index("<noscript>") : page.index("</noscript>")]
    assert "failed" in text
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in text


def test_the_live_page_is_one_file_and_there_is_no_other():
    text, kind, policy = live_file("page.html")
    assert (text, kind) == (live_page(), "text/html")
    assert policy_of(html.html_page([a_run()])) != policy, "another page has other scripts"
    assert policy.split("; ") == [" ".join(each) for each in Page(text).policy().items()]
    assert live_file("picture.js") is None


def test_junit_leads_to_the_page_among_the_artefacts(tmp_path):
    run = a_run(artefacts=tmp_path)
    assert "report.html" not in junit_xml([run])
    file = html.write_report(run, tmp_path)
    assert f'name="report" value="{file}"' in junit_xml([run])
    assert f"[[ATTACHMENT|{file}]]" in junit_xml([run])
