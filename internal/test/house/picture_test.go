package house_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var redraw = flag.Bool("redraw", false, "write docs/packages.svg")

// TestPicture: docs/packages.svg shows the packages as they are. A package is above all that it
// imports; an arrow that follows from others is left out. `go test ./internal/test/house
// -run Picture -redraw` draws it again.
func TestPicture(t *testing.T) {
	atRoot(t)
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("other files import other packages here")
	}
	const file = "docs/packages.svg"
	picture := draw(drawn(list(t, "Imports")))
	if *redraw {
		if err := os.WriteFile(file, []byte(picture), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(file); err != nil || string(have) != picture {
		t.Errorf("%s is not of these packages: draw it again with -redraw; %v", file, err)
	}
}

// drawn are the packages of the library with those of them that each imports. Programs and
// tests, which nothing imports, are not among them.
func drawn(all map[string]map[string]bool) map[string][]string {
	of := map[string][]string{}
	for pkg, imports := range all {
		name := short(pkg)
		switch wing, _, _ := strings.Cut(name, "/"); wing {
		case "bench", "cmd", "examples", "docs":
			continue
		}
		if strings.HasPrefix(name, "internal/test/") {
			continue
		}
		of[name] = nil
		for _, i := range slices.Sorted(maps.Keys(imports)) {
			if strings.HasPrefix(i, module) {
				of[name] = append(of[name], short(i))
			}
		}
	}
	return of
}

// short is a package's folder; the façade's is gomem.
func short(pkg string) string {
	if pkg == module {
		return "gomem"
	}
	return strings.TrimPrefix(pkg, module+"/")
}

// levels are how far each package is above those that import nothing of the module.
func levels(of map[string][]string) map[string]int {
	level := map[string]int{}
	var at func(name string) int
	at = func(name string) int {
		if l, ok := level[name]; ok {
			return l
		}
		l := 0
		for _, i := range of[name] {
			l = max(l, at(i)+1)
		}
		level[name] = l
		return l
	}
	for name := range of {
		at(name)
	}
	return level
}

// reduced are the imports of a package that do not follow from its others.
func reduced(of map[string][]string, name string) []string {
	var reach func(from string, seen map[string]bool)
	reach = func(from string, seen map[string]bool) {
		for _, i := range of[from] {
			if !seen[i] {
				seen[i] = true
				reach(i, seen)
			}
		}
	}
	behind := map[string]bool{}
	for _, i := range of[name] {
		reach(i, behind)
	}
	return slices.DeleteFunc(slices.Clone(of[name]), func(i string) bool { return behind[i] })
}

// A picture's measures, in pixels.
const (
	boxHeight, rowHeight, gap, letter = 18, 46, 8, 6
	width                             = 1500
)

// box is where a package is drawn.
type box struct{ x, y, w int }

// draw is the packages as SVG.
func draw(of map[string][]string) string {
	boxes, height := placed(of)
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "+
		"font-family=\"monospace\" font-size=\"10\">\n", width, height)
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", width, height)
	names := slices.Sorted(maps.Keys(of))
	for _, name := range names {
		from := boxes[name]
		for _, i := range reduced(of, name) {
			to := boxes[i]
			fmt.Fprintf(&b, "<path d=\"M%d %d L%d %d\" stroke=\"%s\" opacity=\"0.5\"><title>%s → "+
				"%s</title></path>\n", from.x+from.w/2, from.y+boxHeight, to.x+to.w/2, to.y,
				colour(name, 40), name, i)
		}
	}
	for _, name := range names {
		at := boxes[name]
		fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\" fill=\"%s\" "+
			"stroke=\"%s\"/>\n<text x=\"%d\" y=\"%d\">%s</text>\n", at.x, at.y, at.w, boxHeight,
			colour(name, 90), colour(name, 40), at.x+4, at.y+12, name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// placed are the boxes, a row or more for each level, the highest first, and the picture's height.
func placed(of map[string][]string) (boxes map[string]box, height int) {
	level := levels(of)
	boxes = map[string]box{}
	y := gap
	for l := slices.Max(slices.Collect(maps.Values(level))); l >= 0; l-- {
		var row []string
		x := gap
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if level[name] != l {
				continue
			}
			w := span(name)
			if x+w > width-gap {
				centre(boxes, row, y)
				row, x, y = nil, gap, y+boxHeight+gap
			}
			row = append(row, name)
			x += w + gap
		}
		centre(boxes, row, y)
		y += rowHeight
	}
	return boxes, y
}

// centre places the boxes of a row.
func centre(boxes map[string]box, row []string, y int) {
	x := width + gap
	for _, name := range row {
		x -= span(name) + gap
	}
	x /= 2
	for _, name := range row {
		boxes[name] = box{x, y, span(name)}
		x += span(name) + gap
	}
}

// span is how wide a package's box is.
func span(name string) int { return letter*len(name) + 8 }

// colour is that of a package's wing, its folder at the root, in a lightness of so many percent.
func colour(name string, light int) string {
	wing, _, _ := strings.Cut(name, "/")
	h := fnv.New32a()
	h.Write([]byte(wing))
	return fmt.Sprintf("hsl(%d,60%%,%d%%)", h.Sum32()%360, light)
}
