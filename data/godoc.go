package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// readGoDoc pairs doc comments with declarations, from GOROOT/src.
func (r *reader) readGoDoc(ctx context.Context, _ string) error {
	root, err := goRoot(ctx, goPatience)
	if err != nil {
		return r.fail("", 0, err)
	}
	src := filepath.Join(root, "src")
	if _, err := os.Stat(src); root == "" || errors.Is(err, fs.ErrNotExist) {
		return r.fail(root, 0, fmt.Errorf("no Go source tree (%w): install Go or set GOROOT to one",
			fs.ErrNotExist))
	}
	src, err = r.directory(src)
	if err != nil {
		return err
	}
	return r.readTree(ctx, src, isGoSource, parseGo)
}

// goPatience is how long the go command may take to say where it is.
const goPatience = 10 * time.Second

// goRoot finds the root of the local toolchain: $GOROOT, what the go command
// says, or the tree this program was built with, "" if unknown. The command runs
// outside any module, and as itself, so that it never fetches another toolchain.
func goRoot(ctx context.Context, patience time.Duration) (string, error) {
	if root := os.Getenv("GOROOT"); root != "" {
		return root, nil
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(limited, "go", "env", "GOROOT")
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local")
	cmd.WaitDelay = time.Second // for children that keep its output open
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case limited.Err() != nil:
		return "", fmt.Errorf("the go command does not say its GOROOT in %v: mend it, or set "+
			"GOROOT to a Go tree", patience)
	case err == nil && len(bytes.TrimSpace(out)) > 0:
		return string(bytes.TrimSpace(out)), nil
	}
	return build.Default.GOROOT, nil
}

// isGoSource accepts non-test Go files, and directories of packages that
// belong to the tree itself.
func isGoSource(d fs.DirEntry) bool {
	name := d.Name()
	if d.IsDir() {
		return name != "testdata" && name != "vendor"
	}
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
}

// parseGo extracts the documented functions, methods and types of a file. A
// file whose outline does not parse is skipped: the tree may be newer than the parser.
func parseGo(text []byte) (parsed, error) { return parseOutline(outline(text)) }

// parseOutline is parseGo of what outline leaves of a file, or of all of it.
func parseOutline(text []byte) (parsed, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", text,
		parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return parsed{skipped: true}, nil
	}
	var p parsed
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Doc != nil {
				p.addDecl(d.Doc, &ast.FuncDecl{Recv: d.Recv, Name: d.Name, Type: d.Type})
			}
		case *ast.GenDecl:
			if d.Tok == token.TYPE {
				p.addTypes(d)
			}
		}
	}
	return p, nil
}

// addTypes adds the documented types of a declaration.
func (p *parsed) addTypes(d *ast.GenDecl) {
	for _, s := range d.Specs {
		spec, ok := s.(*ast.TypeSpec)
		if !ok {
			continue
		}
		doc := spec.Doc
		if doc == nil && !d.Lparen.IsValid() {
			doc = d.Doc
		}
		if doc != nil {
			short := &ast.TypeSpec{Name: spec.Name, TypeParams: spec.TypeParams,
				Assign: spec.Assign, Type: elide(spec.Type)}
			p.addDecl(doc, &ast.GenDecl{Tok: token.TYPE, Specs: []ast.Spec{short}})
		}
	}
}

// addDecl adds one pair, unless the comment is nothing but directives.
func (p *parsed) addDecl(doc *ast.CommentGroup, decl ast.Decl) {
	source := oneLine(doc.Text())
	if source == "" {
		return
	}
	var out bytes.Buffer
	// Raw format skips alignment. An empty file set hides the line breaks of
	// the original.
	config := printer.Config{Mode: printer.RawFormat}
	if err := config.Fprint(&out, token.NewFileSet(), decl); err != nil {
		p.dropped++
		return
	}
	p.pairs = append(p.pairs, Pair{Source: source, Target: oneLine(out.String())})
}

// elide replaces the body of a struct or interface type, as go doc does in
// its one-line summaries.
func elide(t ast.Expr) ast.Expr {
	switch t := t.(type) {
	case *ast.StructType:
		if t.Fields.NumFields() > 0 {
			return ast.NewIdent("struct{ ... }")
		}
	case *ast.InterfaceType:
		if t.Methods.NumFields() > 0 {
			return ast.NewIdent("interface{ ... }")
		}
	}
	return t
}

// oneLine copies s with every run of white space replaced by one space.
func oneLine(s string) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(s) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	return b.String()
}
