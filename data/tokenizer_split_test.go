package data

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// piecesOf are the pieces of a text that stages cut it into.
func piecesOf(text string, stages []stage) (pieces []string) {
	if len(stages) == 0 {
		return []string{text}
	}
	for text != "" {
		n := stages[0].cut.next(text)
		pieces = append(pieces, piecesOf(text[:n], stages[1:])...)
		text = text[n:]
	}
	return pieces
}

// stagesOf are those of a pre_tokenizer.
func stagesOf(t *testing.T, by json.RawMessage) []stage {
	t.Helper()
	stages, _, err := (&tokenizerFile{PreTokenizer: by}).cutting()
	if err != nil {
		t.Error(err)
	}
	return stages
}

// TestSplitsAgainstTokenizers: texts are cut as the library tokenizers does: see
// testdata/splits.py.
func TestSplitsAgainstTokenizers(t *testing.T) {
	text, err := os.ReadFile("testdata/splits.json")
	if err != nil {
		t.Fatal(err)
	}
	var peer struct {
		Texts []string
		Cases []struct {
			By     json.RawMessage
			Pieces [][]string
		}
	}
	if err := json.Unmarshal(text, &peer); err != nil {
		t.Fatal(err)
	}
	for _, c := range peer.Cases {
		stages := stagesOf(t, c.By)
		for i, text := range peer.Texts {
			if got := piecesOf(text, stages); !slices.Equal(got, c.Pieces[i]) {
				t.Errorf("%s:\n%q is\n%q, want\n%q", c.By, text, got, c.Pieces[i])
			}
		}
	}
}

// TestPatternsAsExpressions: methods of cut are the expressions that they stand for.
func TestPatternsAsExpressions(t *testing.T) {
	for c, text := range patterns {
		if text == "" {
			continue
		}
		e := newExpression(text)
		rapid.Check(t, func(t *rapid.T) {
			text := words().Draw(t, "text")
			want := piecesOf(text, []stage{{cut: isolated{e}}})
			if got := piecesOf(text, []stage{{cut: cut(c)}}); !slices.Equal(got, want) {
				t.Fatalf("%q is %q, want %q", text, got, want)
			}
		})
	}
}

// TestExpressionsRefuse: what would match otherwise than there is refused.
func TestExpressionsRefuse(t *testing.T) {
	for _, text := range []string{"", "a*", "^a", "a(?!b)", "(?=a)a", "(?<=a)b", "(?<a>b)",
		"(?i)a", "(?m:a.)", "a++", `\ba`, `\w+`, `[\S]`, `[a&&b]`, "[[a]b]", "[]a]", "[^]a]",
		"a{,3}", `\x61`, `\u0061`, `(a)\1`, `\`, "(", "[a", `\p{Alphabetic}+`,
		"\\é", `a\s+(?!\S)|\s+`} {
		if e := newExpression(text); e != nil {
			t.Errorf("%q is read as %s", text, e.re)
		}
	}
	for _, text := range []string{`(a|b)+`, `[^\d\]-]`, `\p{Han}`, `(?i:a)`, `(?:a)$`, `[$^(]`,
		"é"} {
		if newExpression(text) == nil {
			t.Errorf("%q is refused", text)
		}
	}
}
