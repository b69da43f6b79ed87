package house_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// A thing is something that a package exports.
type thing struct {
	name   string // of its package, methods as T.M
	word   string // the last part of it
	method bool
	at     token.Pos
	spans  [][2]token.Pos // where a use is none: where it is declared, and receivers of methods
}

// things are what a package exports, by name.
func (f *folder) things() []*thing {
	var all []*thing
	add := func(name string, id *ast.Ident, method bool, n ast.Node) {
		if id.IsExported() {
			all = append(all, &thing{name, id.Name, method, id.Pos(),
				[][2]token.Pos{{n.Pos(), n.End()}}})
		}
	}
	receivers := map[string][][2]token.Pos{}
	for _, file := range f.code {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name.Name, d.Name, false, d)
					continue
				}
				of := receiver(d.Recv.List[0].Type)
				receivers[of] = append(receivers[of], [2]token.Pos{d.Recv.Pos(), d.Recv.End()})
				add(of+"."+d.Name.Name, d.Name, true, d)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						add(s.Name.Name, s.Name, false, s)
					case *ast.ValueSpec:
						for _, id := range s.Names {
							add(id.Name, id, false, s)
						}
					}
				}
			}
		}
	}
	for _, x := range all {
		if !x.method {
			x.spans = append(x.spans, receivers[x.name]...)
		}
	}
	return all
}

// used says who uses a thing other than where it is declared: tests and packages for them, and all
// else.
func (t *tree) used(x *thing) (byTests, byOthers bool) {
	for _, u := range slices.Concat(t.uses[x.at], t.named[x.word]) {
		inside := slices.ContainsFunc(x.spans, func(s [2]token.Pos) bool {
			return s[0] <= u.at && u.at < s[1]
		})
		test := u.test || within(u.pkg, forTests)
		byTests = byTests || !inside && test
		byOthers = byOthers || !inside && !test
	}
	return byTests, byOthers
}

// dynamic are the methods, by where they are declared, that are called by way of an interface of
// the module. Of an interface that is written where it is needed only the methods' names are
// known: those are words.
func (t *tree) dynamic() (methods map[token.Pos]bool, words map[string]bool) {
	var all []*types.Interface
	var of []types.Type
	methods, words = map[token.Pos]bool{}, map[string]bool{}
	for path, f := range t.folders {
		scope := t.bare[path].Scope()
		named := map[token.Pos]bool{} // the interfaces that are types of the package
		for _, name := range scope.Names() {
			o, ok := scope.Lookup(name).(*types.TypeName)
			if !ok || generic(o.Type()) {
				continue
			}
			of = append(of, types.NewPointer(o.Type()))
			if i, ok := o.Type().Underlying().(*types.Interface); ok {
				all = append(all, i)
				named[o.Pos()] = true
			}
		}
		for _, file := range slices.Concat(f.code, f.inside, f.outside, f.elsewhere) {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					return !named[n.Name.Pos()]
				case *ast.InterfaceType:
					for _, m := range n.Methods.List {
						for _, id := range m.Names {
							words[id.Name] = true
						}
					}
				}
				return true
			})
		}
	}
	for _, i := range all {
		for _, of := range of {
			if !types.Implements(of, i) {
				continue
			}
			for m := range i.Methods() {
				has, _, _ := types.LookupFieldOrMethod(of, false, nil, m.Name())
				if has != nil {
					methods[has.Pos()] = true
				}
			}
		}
	}
	return methods, words
}

// generic says whether a type has parameters.
func generic(of types.Type) bool {
	n, ok := of.(*types.Named)
	return ok && n.TypeParams().Len() > 0
}
