package data

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/gomem/gomem/internal/regular"
)

// parsed is what one file gave.
type parsed struct {
	pairs   []Pair
	dropped int  // pairs the parser left out
	skipped bool // the file does not parse, and the source tolerates that
	file    File
}

// readTree reads the files below root that keep accepts; directories it does
// not accept are not entered, and symbolic links are not followed. Files are
// parsed on all cores and added in the order of the hash of their paths.
func (r *reader) readTree(ctx context.Context, root string, keep func(fs.DirEntry) bool,
	parse func([]byte) (parsed, error)) error {
	r.corpus.Info.Path = root
	names, err := r.walk(ctx, root, keep)
	if err != nil {
		return err
	}
	work := func(i int) (parsed, error) {
		return r.parseFile(filepath.Join(root, names[i]), parse)
	}
	return inOrder(ctx, len(names), work, func(i int, p parsed) (more bool) {
		r.addParsed(filepath.ToSlash(names[i]), p)
		return !r.full()
	})
}

// walk lists the files below root that keep accepts, relative to root, in the
// order of the hash of their paths.
func (r *reader) walk(ctx context.Context, root string,
	keep func(fs.DirEntry) bool) ([]string, error) {
	type file struct {
		name string
		hash uint64
	}
	var files []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return r.fail(path, 0, Remedied(err))
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case path == root || keep(d) && d.IsDir():
			return nil
		case d.IsDir():
			return fs.SkipDir
		case !keep(d):
			return nil
		case !d.Type().IsRegular():
			r.leaveOut(path)
			return nil
		}
		name, err := filepath.Rel(root, path)
		files = append(files, file{name, hashString(filepath.ToSlash(name))})
		return err
	})
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.name, b.name))
	})
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.name
	}
	return names, err
}

// leaveOut counts a path that is passed over.
func (r *reader) leaveOut(path string) {
	if r.corpus.Info.LeftOut++; r.corpus.Info.LeftOut == 1 {
		r.corpus.Info.First, r.corpus.Info.Why = path, "a link, or no regular file"
	}
}

// parseFile reads and parses one file.
func (r *reader) parseFile(path string, parse func([]byte) (parsed, error)) (parsed, error) {
	text, err := regular.ReadFile(path)
	if err != nil {
		return parsed{}, r.fail(path, 0, Remedied(err))
	}
	p, err := parse(text)
	if err != nil {
		return parsed{}, r.fail(path, 0, err)
	}
	p.file = FileOf("", text)
	return p, nil
}

// addParsed enters a file and its pairs.
func (r *reader) addParsed(name string, p parsed) {
	r.corpus.Info.Dropped += p.dropped
	if p.skipped {
		r.corpus.Info.Skipped++
	}
	for _, pair := range p.pairs {
		r.add(pair)
	}
	p.file.Name = name
	r.addFile(p.file)
}

// directory resolves links in path, which must name a directory.
func (r *reader) directory(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", r.fail(path, 0, Remedied(err))
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", r.fail(path, 0, Remedied(err))
	}
	if !info.IsDir() {
		return "", r.fail(path, 0, fmt.Errorf("is a file: give the directory that holds it"))
	}
	return real, nil
}

// inOrder calls work(i) for every i in [0, n) on all cores, and use with the
// results in the order of i, on the caller's goroutine, until use returns
// false or work fails. The first failure in the order of i is returned,
// whatever the scheduling. No goroutine outlives the call.
func inOrder[T any](ctx context.Context, n int, work func(int) (T, error),
	use func(int, T) (more bool)) error {
	type result struct {
		value T
		err   error
	}
	var running sync.WaitGroup
	defer running.Wait()
	// The queue bounds how far work runs ahead of use, and so the memory.
	queue := make(chan chan result, 4*runtime.GOMAXPROCS(0))
	stop := make(chan struct{})
	defer close(stop)
	running.Go(func() {
		defer close(queue)
		for i := range n {
			slot := make(chan result, 1)
			select {
			case queue <- slot:
			case <-stop:
				return
			}
			running.Go(func() {
				value, err := work(i)
				slot <- result{value, err}
			})
		}
	})
	i := 0
	for slot := range queue {
		r := <-slot
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if r.err != nil {
			return r.err
		}
		if !use(i, r.value) {
			return nil
		}
		i++
	}
	return nil
}
