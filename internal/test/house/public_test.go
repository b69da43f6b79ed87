package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestPublicTypes: an exported name of a public package is no alias of an internal package's, or
// `go doc` would show neither its fields nor its methods, and nobody could write its type.
func TestPublicTypes(t *testing.T) {
	atRoot(t)
	aliases := 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && hidden(file, d.Name()):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		aliases += aliased(t, file, f)
		return nil
	})
	if err != nil || aliases < 10 {
		t.Errorf("%d aliases seen: %v", aliases, err)
	}
}

// hidden says whether others cannot import the packages of a folder, by its path and name.
func hidden(file, name string) bool {
	return name == "internal" || name == "testdata" || name == "cmd" || name == "bench" ||
		file != "." && strings.HasPrefix(name, ".")
}

// aliased is how many exported aliases of other packages' types a file has. Those of internal
// ones fail the test.
func aliased(t *testing.T, file string, f *ast.File) int {
	imported := map[string]string{}
	for _, i := range f.Imports {
		full, _ := strconv.Unquote(i.Path.Value)
		name := full[strings.LastIndex(full, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		imported[name] = full
	}
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok || !spec.Assign.IsValid() || !spec.Name.IsExported() {
			return true
		}
		if of, ok := spec.Type.(*ast.SelectorExpr); ok {
			n++
			from := imported[of.X.(*ast.Ident).Name]
			if strings.Contains(from, "/internal/") {
				t.Errorf("%s: %s is an alias of %s.%s", file, spec.Name, from, of.Sel)
			}
		}
		return true
	})
	return n
}
