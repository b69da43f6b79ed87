package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	inBackticks = regexp.MustCompile("`([^`]+)`")
	goName      = regexp.MustCompile(`^\pL\w*(\.\pL\w*)?$`)
)

// TestWhere: what docs/where.md names is there. A name in backticks is one of the last Go file
// before it: a function, a type or the like, or a method as in T.M.
func TestWhere(t *testing.T) {
	atRoot(t)
	text, err := os.ReadFile("docs/where.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range misplaced(string(text), ".") {
		t.Errorf("docs/where.md: %s", problem)
	}
}

// misplaced lists what a document names and a module at root does not have, and its headings
// that name no Go file or nothing in it.
func misplaced(text, root string) (problems []string) {
	declared := map[string]map[string]bool{} // by file
	for section := range strings.SplitSeq(text, "\n### ") {
		title, body, _ := strings.Cut(section, "\n")
		if strings.HasPrefix(title, "#") {
			continue // what is before the first question
		}
		file, found := "", 0
		for _, match := range inBackticks.FindAllStringSubmatch(body, -1) {
			switch word := strings.Join(strings.Fields(match[1]), " "); {
			case strings.HasSuffix(word, ".go"):
				file = word
				names, err := declarations(filepath.Join(root, file))
				if err != nil {
					problems = append(problems, fmt.Sprintf("%s: %v", title, err))
				}
				declared[file] = names
			case strings.Contains(word, "/") && !strings.Contains(word, " "):
				if _, err := os.Stat(filepath.Join(root, word)); err != nil {
					problems = append(problems, fmt.Sprintf("%s: %v", title, err))
				}
			case !goName.MatchString(word) || file == "":
			case declared[file] != nil && !declared[file][word]:
				problems = append(problems, fmt.Sprintf("%s: %s has no %s", title, file, word))
			default:
				found++
			}
		}
		if found == 0 {
			problems = append(problems, title+": it names nothing in a Go file")
		}
	}
	return problems
}

// declarations are the names that a file declares outside of functions, methods as T.M.
func declarations(path string) (map[string]bool, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			names[name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names[n.Name] = true
					}
				}
			}
		}
	}
	return names, nil
}

// receiver is the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// TestWhereRule: what the rule sees and what it leaves alone.
func TestWhereRule(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	const source = `package b
type T[X any] struct{}
func (t *T[X]) M() {}
func F() {}
var v int
`
	err := os.WriteFile(filepath.Join(root, "a", "b", "c.go"), []byte(source), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		body string
		want []string // parts of the problems, in order
	}{
		{"In `a/b/c.go`, `T`, `F`, `T.M` and `v`.", nil},
		{"In `a/b/c.go`,\n`F`, of `a/b`, by `gomem plan\n--x` and `--json`.", nil},
		{"In `a/b/c.go`, `M`.", []string{"a/b/c.go has no M", "names nothing"}},
		{"In `a/b/c.go`, `F`, and `T.F`.", []string{"has no T.F"}},
		{"In `a/b/d.go`, `F`.", []string{"d.go"}},
		{"In `a/b/c.go`, `F`, and `a/d`.", []string{"a/d"}},
		{"In `a/b/c.go`.", []string{"names nothing"}},
		{"In `F`.", []string{"names nothing"}},
		{"Nowhere.", []string{"names nothing"}},
	} {
		text := "# Where is…\n\n`F`\n\n### Where is it?\n\n" + c.body + "\n"
		got := misplaced(text, root)
		if !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%q: got %q, want %q", c.body, got, c.want)
		}
	}
}
