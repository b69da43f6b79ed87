package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestHouseRules turns the rules of CONTRIBUTING.md that a program can check
// into a test: exported names are documented, functions have at most 80 lines,
// generated ones too, and files at most 500.
func TestHouseRules(t *testing.T) {
	atRoot(t)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") ||
			strings.HasSuffix(path, "_test.go") {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		generated := ast.IsGenerated(file)
		if lines := fset.Position(file.End()).Line; lines > 500 && !generated {
			t.Errorf("%s has %d lines: split it", path, lines)
		}
		for _, decl := range file.Decls {
			checkLength(t, fset, decl)
			if !generated {
				checkDecl(t, fset, decl)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkLength(t *testing.T, fset *token.FileSet, decl ast.Decl) {
	at := fset.Position(decl.Pos())
	if d, ok := decl.(*ast.FuncDecl); ok {
		if lines := fset.Position(d.End()).Line - at.Line + 1; lines > 80 {
			t.Errorf("%s: %s has %d lines: split it", at, d.Name.Name, lines)
		}
	}
}

func checkDecl(t *testing.T, fset *token.FileSet, decl ast.Decl) {
	at := fset.Position(decl.Pos())
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
			t.Errorf("%s: %s is exported without a comment", at, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			for _, name := range exported(spec) {
				if d.Doc == nil && specDoc(spec) == nil {
					t.Errorf("%s: %s is exported without a comment", fset.Position(spec.Pos()),
						name)
				}
			}
		}
	}
}

// exportedReceiver reports whether a function belongs to an exported type or to
// none: the methods of an operation's struct are documented where the interface
// is.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	id, ok := t.(*ast.Ident)
	return ok && id.IsExported()
}

func exported(spec ast.Spec) []string {
	var names []*ast.Ident
	switch s := spec.(type) {
	case *ast.TypeSpec:
		names = []*ast.Ident{s.Name}
	case *ast.ValueSpec:
		names = s.Names
	}
	var out []string
	for _, n := range names {
		if n.IsExported() {
			out = append(out, n.Name)
		}
	}
	return out
}

func specDoc(spec ast.Spec) *ast.CommentGroup {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		return s.Doc
	case *ast.ValueSpec:
		if s.Doc != nil {
			return s.Doc
		}
		return s.Comment
	}
	return nil
}

// TestPropertiesAreFixed finds packages whose tests use rapid and would draw other cases each time:
// internal/longtest sets its seed when it is imported.
func TestPropertiesAreFixed(t *testing.T) {
	atRoot(t)
	draws, fixed := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			dir := filepath.Dir(path)
			draws[dir] = draws[dir] || i.Path.Value == `"pgregory.net/rapid"`
			fixed[dir] = fixed[dir] || i.Path.Value == `"`+module+`/internal/longtest"`
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range draws {
		if draws[dir] && !fixed[dir] {
			t.Errorf("%s: tests draw by rapid; import internal/longtest, too", dir)
		}
	}
}
