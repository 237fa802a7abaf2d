package sluice_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Every exported name has a comment where it is declared, on itself or on its group.
func TestEverythingIsDocumented(t *testing.T) {
	var paths []string
	for _, folder := range []string{"", "hip"} {
		found, err := filepath.Glob(filepath.Join(folder, "*.go"))
		check(t, err)
		paths = append(paths, found...)
	}
	explained := 0
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		check(t, err)
		see := func(name *ast.Ident, comments ...*ast.CommentGroup) {
			if !name.IsExported() {
				return
			}
			for _, comment := range comments {
				if strings.TrimSpace(comment.Text()) != "" {
					explained++
					return
				}
			}
			t.Errorf("%v: %s has no comment", files.Position(name.Pos()), name.Name)
		}
		for _, declaration := range file.Decls {
			switch declared := declaration.(type) {
			case *ast.FuncDecl:
				if receiver(declared).IsExported() {
					see(declared.Name, declared.Doc)
				}
			case *ast.GenDecl:
				for _, spec := range declared.Specs {
					switch made := spec.(type) {
					case *ast.TypeSpec:
						see(made.Name, made.Doc, declared.Doc)
					case *ast.ValueSpec:
						for _, name := range made.Names {
							see(name, made.Doc, made.Comment, declared.Doc)
						}
					}
				}
			}
		}
	}
	if explained < 150 {
		t.Errorf("%d comments were found", explained)
	}
}

// receiver is the type of a method, or a placeholder for a function.
func receiver(function *ast.FuncDecl) *ast.Ident {
	if function.Recv == nil {
		return ast.NewIdent("Exported")
	}
	of := function.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	return of.(*ast.Ident)
}
