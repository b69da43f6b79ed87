package house_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A tree is the module's text: every package with its tests, and what each name in it means.
// Packages of others are empty in it, so that nothing but the module is read: a name that is
// asked of their values has no meaning, and counts as a use of all that is called so.
type tree struct {
	fset    *token.FileSet
	folders map[string]*folder        // by import path
	bare    map[string]*types.Package // without the bodies of functions: what others import

	mu    sync.Mutex
	uses  map[token.Pos][]use // by where what is used is declared
	named map[string][]use    // of names whose meaning is not known, by name
}

// A folder is a package and its tests.
type folder struct {
	path            string // its import path
	code            []*ast.File
	inside, outside []*ast.File // tests: of the package itself, and of its package x_test
	elsewhere       []*ast.File // what is not built on the machine that the tree is read for
}

// A use is where something is used.
type use struct {
	at   token.Pos
	pkg  string
	test bool // by a test
}

// machine is what the tree is read for: where most of the files are built.
var machine = build.Context{GOOS: "linux", GOARCH: "amd64", Compiler: "gc", CgoEnabled: true,
	ReleaseTags: build.Default.ReleaseTags}

// readTree reads the module in the folder root, and finds what its names mean.
func readTree(root string) (*tree, error) {
	t := &tree{fset: token.NewFileSet(), folders: map[string]*folder{},
		bare: map[string]*types.Package{}, uses: map[token.Pos][]use{}, named: map[string][]use{}}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || file != root && strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case d.IsDir() && file != root && isModule(file):
			return fs.SkipDir // what it uses of this module is used from outside
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		return t.read(root, file)
	})
	if err != nil {
		return nil, err
	}
	paths := slices.Sorted(maps.Keys(t.folders))
	for _, path := range paths {
		t.Import(path)
	}
	work := make(chan *folder)
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for f := range work {
				t.understand(f)
			}
		})
	}
	for _, path := range paths {
		work <- t.folders[path]
	}
	close(work)
	workers.Wait()
	return t, nil
}

// isModule reports whether a folder is a module's root, which imports what is not known here.
func isModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}

// read adds a file to the folder that it is of.
func (t *tree) read(root, file string) error {
	parsed, err := parser.ParseFile(t.fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir, err := filepath.Rel(root, filepath.Dir(file))
	if err != nil {
		return err
	}
	path := path(filepath.ToSlash(dir))
	f := t.folders[path]
	if f == nil {
		f = &folder{path: path}
		t.folders[path] = f
	}
	built, err := machine.MatchFile(filepath.Dir(file), filepath.Base(file))
	test := strings.HasSuffix(file, "_test.go")
	switch {
	case !built:
		f.elsewhere = append(f.elsewhere, parsed)
	case test && strings.HasSuffix(parsed.Name.Name, "_test"):
		f.outside = append(f.outside, parsed)
	case test:
		f.inside = append(f.inside, parsed)
	default:
		f.code = append(f.code, parsed)
	}
	return err
}

// Import is the package at a path: one of the module's without the bodies of its functions, or an
// empty one.
func (t *tree) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if p := t.bare[path]; p != nil {
		return p, nil
	}
	f := t.folders[path]
	if f == nil {
		p := types.NewPackage(path, path[strings.LastIndex(path, "/")+1:])
		p.MarkComplete()
		return p, nil
	}
	config := types.Config{Importer: t, IgnoreFuncBodies: true, FakeImportC: true,
		Error: func(error) {}}
	p, _ := config.Check(path, t.fset, f.code, nil)
	t.bare[path] = p
	return p, nil
}

// understand finds what the names in a package and its tests mean.
func (t *tree) understand(f *folder) {
	whole := t.check(f.path, append(slices.Clone(f.code), f.inside...), t)
	if len(f.outside) > 0 {
		t.check(f.path+"_test", f.outside, besides{t, f.path, whole})
	}
	for _, file := range f.elsewhere {
		t.record(f.path, file, nil)
	}
}

// besides imports a package with what its own tests add to it, and others as a tree does.
type besides struct {
	t     *tree
	path  string
	whole *types.Package
}

func (b besides) Import(path string) (*types.Package, error) {
	if path == b.path {
		return b.whole, nil
	}
	return b.t.Import(path)
}

// check finds what the names in files mean, and records it.
func (t *tree) check(path string, files []*ast.File, importer types.Importer) *types.Package {
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer, FakeImportC: true, Error: func(error) {}}
	p, _ := config.Check(path, t.fset, files, info)
	for _, file := range files {
		t.record(path, file, info)
	}
	return p
}

// record notes what a file uses, by the meaning of its names as far as there is one.
func (t *tree) record(path string, file *ast.File, info *types.Info) {
	t.mu.Lock()
	defer t.mu.Unlock()
	test := strings.HasSuffix(t.fset.File(file.Pos()).Name(), "_test.go")
	foreign := map[*ast.Ident]bool{} // what is selected from packages of others
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && info != nil {
				p, ok := info.Uses[of].(*types.PkgName)
				foreign[n.Sel] = ok && t.folders[p.Imported().Path()] == nil
			}
		case *ast.Ident:
			u := use{n.Pos(), strings.TrimSuffix(path, "_test"), test}
			switch {
			case foreign[n] || info != nil && info.Defs[n] != nil:
			case info != nil && info.Uses[n] != nil:
				at := info.Uses[n].Pos()
				t.uses[at] = append(t.uses[at], u)
			default:
				t.named[n.Name] = append(t.named[n.Name], u)
			}
		}
		return true
	})
}

// where is a position as an error says it.
func (t *tree) where(at token.Pos) string {
	p := t.fset.Position(at)
	return p.Filename + ":" + strconv.Itoa(p.Line)
}
