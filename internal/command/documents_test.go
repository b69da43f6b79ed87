package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// commandLines matches a command on a line of its own, and one in the text.
var commandLines = []*regexp.Regexp{
	regexp.MustCompile(`(?m)^ +(?:\$ )?(?:go run \./cmd/)?gomem(?:-cluster)? +([^\n:]*)$`),
	regexp.MustCompile("`(?:go run \\./cmd/)?gomem(?:-cluster)? ([^`]*)`"),
}

// wrapped is the end of a line that goes on in the next.
var wrapped = regexp.MustCompile(`\\\n\s*`)

// TestDocumentedCommands: every command in the documents has the flags it needs.
func TestDocumentedCommands(t *testing.T) {
	paths, err := filepath.Glob("../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	paths = append(paths, pages...)
	paths = append(paths, "../../README.md", "../../ARCHITECTURE.md", "../../CONTRIBUTING.md")
	found := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole := wrapped.ReplaceAllString(string(text), " ")
		for _, form := range commandLines {
			for _, match := range form.FindAllStringSubmatch(whole, -1) {
				line, _, _ := strings.Cut(match[1], "  ")
				plain := strings.NewReplacer(`\|`, " ", "…", "", "'", "")
				args := strings.Fields(plain.Replace(line))
				found++
				if o := invoke(t, append(args, "--help")...); o.status != exitOK {
					t.Errorf("%s: gomem %s: %s", path, line, o.stderr)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d commands in %v", found, paths)
	}
	t.Logf("%d commands", found)
}
