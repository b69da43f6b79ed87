package house_test

import (
	"fmt"
	"io/fs"
	"os"
	slashed "path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// TestLinks: every relative link of a document leads to a file that exists, and to a heading in it.
func TestLinks(t *testing.T) {
	atRoot(t)
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || path == "docs/measurements/figures"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found += len(linksOf(string(text)))
		for _, said := range brokenLinks(os.DirFS("."), filepath.ToSlash(path), string(text)) {
			t.Error(said)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 50 {
		t.Errorf("only %d links in all documents", found)
	}
}

var (
	inlineLink = regexp.MustCompile(`\]\(\s*<?([^)<>\s]+)>?(?:\s+"[^"]*")?\s*\)`)
	namedLink  = regexp.MustCompile(`(?m)^\[[^\]]+\]:\s*(\S+)`)
	codeSpan   = regexp.MustCompile("`[^`]*`")
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	scheme     = regexp.MustCompile(`^(?:[a-z][a-z0-9+.-]*:|//)`)
)

// prose is a document without its blocks of code.
func prose(text string) string {
	var kept strings.Builder
	fenced, blank, block := false, true, false
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		if strings.HasPrefix(bare, "```") {
			fenced = !fenced
			continue
		}
		indented := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")
		block = bare == "" && block || indented && (blank || block)
		if blank = bare == ""; !fenced && !block {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// linksOf are the relative links of a document, in order.
func linksOf(text string) []string {
	text = codeSpan.ReplaceAllString(prose(text), "")
	var links []string
	for _, form := range []*regexp.Regexp{inlineLink, namedLink} {
		for _, match := range form.FindAllStringSubmatch(text, -1) {
			if !scheme.MatchString(match[1]) {
				links = append(links, match[1])
			}
		}
	}
	return links
}

// anchorsOf are the names by which a document's headings are linked to: in small letters, without
// signs, with hyphens for spaces, and numbered where a name is there already.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	for line := range strings.Lines(prose(text)) {
		level := len(line) - len(strings.TrimLeft(line, "#"))
		if level == 0 || level > 6 || !strings.HasPrefix(line[level:], " ") {
			continue
		}
		heading := linkText.ReplaceAllString(strings.TrimSpace(line[level:]), "$1")
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, heading)
		unique := name
		for n := 1; anchors[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", name, n)
		}
		anchors[unique] = true
	}
	return anchors
}

// brokenLinks says which relative links of the document at a path lead nowhere.
func brokenLinks(files fs.FS, path, text string) []string {
	var said []string
	for _, link := range linksOf(text) {
		name, anchor, _ := strings.Cut(link, "#")
		page := text
		if name != "" {
			target := slashed.Join(slashed.Dir(path), name)
			if _, err := fs.Stat(files, target); err != nil {
				said = append(said, fmt.Sprintf("%s: %s does not exist", path, link))
				continue
			}
			other, _ := fs.ReadFile(files, target) // a folder has no headings
			page = string(other)
		}
		if anchor != "" && !anchorsOf(page)[anchor] {
			said = append(said, fmt.Sprintf("%s: %s: no such heading", path, link))
		}
	}
	return said
}

// TestLinksRule: what the rule sees and what it leaves alone.
func TestLinksRule(t *testing.T) {
	files := fstest.MapFS{
		"README.md": {Data: []byte("# Top\n")},
		"docs/a.md": {Data: []byte("# A `b` c!\n\n## Twice\n\n## Twice\n\n    # not one\n")},
	}
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"a file", "[a](a.md)", 0},
		{"a file that is not there", "[b](b.md)", 1},
		{"a folder above", "[top](../README.md#top)", 0},
		{"outside of all", "[x](../../x.md)", 1},
		{"a folder", "[all](../docs)", 0},
		{"a heading", "[a](a.md#a-b-c)", 0},
		{"a heading that is not there", "[a](a.md#a-c)", 1},
		{"the second of a name", "[a](a.md#twice-1)", 0},
		{"the third of two", "[a](a.md#twice-2)", 1},
		{"a heading in a block", "[a](a.md#not-one)", 1},
		{"a heading of its own", "# Here, now\n\n[h](#here-now)", 0},
		{"none of its own", "[h](#here)", 1},
		{"a heading of a folder", "[all](../docs#top)", 1},
		{"an image", "![x](x.png)", 1},
		{"two on a line", "[a](a.md) and [b](b.md) and [c](c.md)", 2},
		{"text over two lines", "[a\nb](b.md)", 1},
		{"a title", "[b](b.md \"B\")", 1},
		{"by a name", "see [b]\n\n[b]: b.md\n", 1},
		{"the web", "[w](https://example.com/x.md) [m](mailto:a@example.com)", 0},
		{"code", "`[b](b.md)`", 0},
		{"a fence", "```\n[b](b.md)\n```\n", 0},
		{"a block", "text\n\n    [b](b.md)\n\n    [b](b.md)\n", 0},
		{"after a block", "    code\n\n[b](b.md)\n", 1},
		{"an item that goes on", "* item\n    [b](b.md)\n", 1},
	} {
		if got := brokenLinks(files, "docs/page.md", c.text); len(got) != c.want {
			t.Errorf("%s: %d broken links, want %d: %q", c.name, len(got), c.want, got)
		}
	}
}
