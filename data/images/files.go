package images

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // files are of this kind
	_ "image/png"  // or this
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/internal/regular"
)

// maxPixels is the largest image that is decoded, so that a small file cannot
// ask for all memory.
const maxPixels = 1 << 26

// entry is a file of a known kind. Its name is relative to the root, with
// slashes; bytes are what it holds, once it is read.
type entry struct {
	name  string
	kind  int
	bytes []byte
}

// files are a part of a set of files.
type files struct {
	entries  []entry
	mirrored bool // in training, one of two
}

func (f files) len() int       { return len(f.entries) }
func (f files) kind(i int) int { return f.entries[i].kind }

// paint decodes file i, which was decoded once when the set was opened.
func (f files) paint(dst *image.RGBA, i int, rng *rand.Rand) {
	src, err := decode(f.entries[i].bytes)
	if err != nil {
		panic(fmt.Sprintf("%s could be decoded once: %v", f.entries[i].name, err))
	}
	distort(dst, src, rng, f.mirrored)
}

// readDir reads a directory that holds one for each kind.
func (r *reader) readDir() (*Set, error) {
	root, err := r.directory(r.path)
	if err != nil {
		return nil, err
	}
	classes, err := os.ReadDir(root)
	if err != nil {
		return nil, r.fail(r.path, err)
	}
	s := &Set{}
	var all []entry
	for _, class := range classes {
		root := filepath.Join(r.path, class.Name())
		switch {
		case strings.HasPrefix(class.Name(), ".") || class.Type().IsRegular():
			continue
		case !class.IsDir():
			if err := r.leaveOut(root, errLink); err != nil {
				return nil, err
			}
			continue
		}
		names, err := r.list(root, ".png", ".jpg", ".jpeg")
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, r.fail(root, errors.New("no PNG or JPEG file: add some, or remove the "+
				"directory"))
		}
		for _, name := range names {
			all = append(all, entry{name: class.Name() + "/" + name, kind: len(s.ClassNames)})
		}
		s.ClassNames = append(s.ClassNames, class.Name())
	}
	if len(all) == 0 {
		return nil, r.fail(r.path, errors.New("no directory in it: give one that holds a "+
			"directory of images for each kind"))
	}
	return s, r.load(s, all, true)
}

// readIcons reads the icons below a directory whose names occur twice or more.
func (r *reader) readIcons() (*Set, error) {
	names, err := r.list(r.path, ".png")
	if err != nil {
		return nil, err
	}
	byKind := map[string][]string{}
	for _, name := range names {
		kind := icon(name)
		byKind[kind] = append(byKind[kind], name)
	}
	s := &Set{}
	s.Info.Reason = "a name with a single file"
	for kind, names := range byKind {
		if len(names) > 1 {
			s.ClassNames = append(s.ClassNames, kind)
		} else {
			s.Info.Dropped++
		}
	}
	if len(s.ClassNames) == 0 {
		return nil, r.fail(r.path, fmt.Errorf("%d PNG files, no two of a name: give a directory "+
			"of icon themes", len(names)))
	}
	slices.Sort(s.ClassNames)
	var all []entry
	for i, kind := range s.ClassNames {
		for _, name := range byKind[kind] {
			all = append(all, entry{name: name, kind: i})
		}
	}
	return s, r.load(s, all, false)
}

// icon is the name of an icon: that of its file, without extension.
func icon(name string) string {
	base := name[strings.LastIndexByte(name, '/')+1:]
	return base[:len(base)-len(filepath.Ext(base))]
}

// What is wrong with a path that is left out.
var (
	errLink  = errors.New("a link, or no regular file")
	errOther = errors.New("a picture of another kind: convert it to PNG or JPEG")
)

// otherKinds are the extensions of pictures that are not read. They are counted, so that
// nobody takes them for read.
func otherKinds() []string {
	return []string{".avif", ".bmp", ".gif", ".heic", ".heif", ".tif", ".tiff", ".webp"}
}

// list gives the regular files below root with one of some extensions, relative
// to root, with slashes. A link at root is followed; what is hidden is not there.
func (r *reader) list(root string, extensions ...string) ([]string, error) {
	real, err := r.directory(root)
	if err != nil {
		return nil, err
	}
	var names []string
	err = filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
		switch {
		case r.ctx.Err() != nil:
			return context.Cause(r.ctx)
		case err != nil && (path == real || !unreadable(err)):
			return r.fail(path, err)
		case err != nil:
			return cmp.Or(r.leaveOut(path, regular.Bare(err)), fs.SkipDir)
		case path != real && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		extension := strings.ToLower(filepath.Ext(path))
		switch {
		case slices.Contains(otherKinds(), extension):
			return r.leaveOut(path, errOther)
		case !slices.Contains(extensions, extension):
			return nil
		case !d.Type().IsRegular():
			return r.leaveOut(path, errLink)
		}
		name, err := filepath.Rel(real, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	return names, err
}

// directory resolves links in path, which must name a directory.
func (r *reader) directory(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", r.fail(path, err)
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return "", r.fail(path, err)
	case !info.IsDir():
		return "", r.fail(path, errors.New("is a file: give the directory that holds it"))
	}
	return real, nil
}

// load reads files and divides them into parts. They are listed in one order, whatever
// the share that is held out, so that Info tells sets apart and not shares.
func (r *reader) load(s *Set, all []entry, mirrored bool) error {
	byHash(all)
	slices.SortStableFunc(all, func(a, b entry) int {
		return partOf(a, 0) - partOf(b, 0)
	})
	all = r.bounded(all)
	if err := r.readFiles(s, all); err != nil {
		return err
	}
	if err := r.checkKinds(s, all); err != nil {
		return err
	}
	var parts [2][]entry
	for _, e := range all {
		if e.bytes != nil {
			p := partOf(e, r.opts.EvalShare)
			parts[p] = append(parts[p], e)
		}
	}
	s.train, s.heldOut = files{parts[0], mirrored}, files{parts[1], mirrored}
	return nil
}

// bounded are the files that may be kept, in their order.
func (r *reader) bounded(all []entry) []entry {
	var kept [2]int
	return slices.DeleteFunc(all, func(e entry) bool {
		n := &kept[partOf(e, r.opts.EvalShare)]
		*n++
		return r.limit(*n) < *n
	})
}

// partOf is 1 for a file that a share holds out, else 0.
func partOf(e entry, share float64) int {
	if data.HeldOut(e.name, share) {
		return 1
	}
	return 0
}

// checkKinds refuses a kind of which nothing can be read.
func (r *reader) checkKinds(s *Set, all []entry) error {
	const some, readable = 1, 2
	state := make([]int, len(s.ClassNames))
	for _, e := range all {
		if e.bytes != nil {
			state[e.kind] = readable
		} else {
			state[e.kind] = max(state[e.kind], some)
		}
	}
	if kind := slices.Index(state, some); kind >= 0 {
		return r.fail(r.first, fmt.Errorf("no image of %s can be read (%w)",
			s.ClassNames[kind], r.why))
	}
	return nil
}

// byHash orders files by the hash of their names, so that the first of them are
// a fair sample.
func byHash(all []entry) {
	hashes := map[string][sha256.Size]byte{}
	for _, e := range all {
		hashes[e.name] = sha256.Sum256([]byte(e.name))
	}
	slices.SortFunc(all, func(a, b entry) int {
		x, y := hashes[a.name], hashes[b.name]
		return bytes.Compare(x[:], y[:])
	})
}

// readFiles reads and checks files on all cores.
func (r *reader) readFiles(s *Set, all []entry) error {
	var list []data.File
	var strict error
	at := func(i int) string { return filepath.Join(r.path, filepath.FromSlash(all[i].name)) }
	err := data.InOrder(r.ctx, len(all), func(i int) (picture, error) {
		return r.readFile(all[i].name, at(i))
	}, func(i int, p picture) bool {
		if p.bad != nil {
			strict = r.leaveOut(at(i), p.bad)
			return strict == nil
		}
		all[i].bytes = p.bytes
		list = append(list, p.file)
		r.step(len(list))
		return true
	})
	s.Info.Path = r.path
	s.Info.Summarize(list)
	return cmp.Or(err, strict)
}

// picture is the content of a file, or why it is left out.
type picture struct {
	bytes []byte
	file  data.File
	bad   error
}

// readFile reads a file that should be an image.
func (r *reader) readFile(name, path string) (picture, error) {
	content, err := regular.ReadFile(path)
	switch {
	case unreadable(err):
		return picture{bad: regular.Bare(err)}, nil
	case err != nil:
		return picture{}, r.fail(path, err)
	}
	_, err = decode(content)
	return picture{content, data.FileOf(name, content), err}, nil
}

// unreadable reports whether a path is to be left out rather than replaced.
func unreadable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, regular.ErrNotRegular)
}

// mostPixels is how many pixels a file can have, whatever it says, so that what is cut off is
// refused before there is memory for what it claims.
func mostPixels(kind string, content []byte) int64 {
	const (
		deflate = 1032 // bytes that one of deflate's stands for at most
		block   = 64   // pixels of JPEG's blocks, each of which has a bit at least
	)
	size := 8 * int64(len(content)) // in bits
	if kind != "png" {
		return block * size
	}
	channels := map[byte]int64{2: 3, 4: 2, 6: 4} // by the type of colour; others have one
	return deflate * size / (int64(content[24]) * max(1, channels[content[25]]))
}

// decode decodes a PNG or JPEG, and turns it upright.
func decode(content []byte) (image.Image, error) {
	config, kind, err := image.DecodeConfig(bytes.NewReader(content))
	pixels := int64(config.Width) * int64(config.Height)
	switch {
	case err != nil: // and decoding says why
	case pixels > maxPixels:
		return nil, fmt.Errorf("image of %d by %d pixels: scale it down to %d in all, or remove it",
			config.Width, config.Height, maxPixels)
	case pixels > mostPixels(kind, content):
		return nil, fmt.Errorf("not a whole PNG or JPEG (%d bytes cannot have %d by %d pixels): "+
			"replace or remove it", len(content), config.Width, config.Height)
	}
	src, _, err := image.Decode(bytes.NewReader(content))
	switch {
	case err != nil:
		return nil, fmt.Errorf("not a whole PNG or JPEG (%w): replace or remove it", err)
	case src.Bounds().Empty():
		return nil, errors.New("image without pixels: replace or remove it")
	}
	return upright(src, content), nil
}
