package mesh

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxAxes bounds the axes of a mesh, maxSize their sizes, and maxName the bytes of their names.
const (
	maxAxes = 4
	maxSize = 1 << 16
	maxName = 100
)

// Mesh is a grid of coordinates with named axes. Along axis i it has Cluster[i] processes,
// and each of them Device[i] slices, which it computes itself, one after the other.
type Mesh struct {
	Axes    []string
	Cluster []int
	Device  []int
}

// Size is the number of coordinates along axis i.
func (m Mesh) Size(i int) int { return m.Cluster[i] * m.Device[i] }

// Processes is the number of processes.
func (m Mesh) Processes() int {
	n := 1
	for _, c := range m.Cluster {
		n *= c
	}
	return n
}

// Slices is the number of slices of a process.
func (m Mesh) Slices() int {
	n := 1
	for _, d := range m.Device {
		n *= d
	}
	return n
}

// coords are the coordinates of a process along the axes. The last one varies fastest.
func (m Mesh) coords(rank int) (at coords) {
	for i, c := range slices.Backward(m.Cluster) {
		at[i] = rank % c
		rank /= c
	}
	return at
}

// Axis is the number of the axis of a name, or -1.
func (m Mesh) Axis(name string) int { return slices.Index(m.Axes, name) }

// String is what [ParseMesh] reads: "batch:2,experts:4x5".
func (m Mesh) String() string {
	var list []string
	for i, name := range m.Axes {
		shape := strconv.Itoa(m.Device[i])
		if m.Cluster[i] > 1 {
			shape = fmt.Sprintf("%dx%d", m.Cluster[i], m.Device[i])
		}
		list = append(list, name+":"+shape)
	}
	return strings.Join(list, ",")
}

// ParseMesh reads the axes of a mesh: a name, and slices ("batch:2") or processes and the
// slices of each ("experts:4x5"), with commas between them.
func ParseMesh(text string) (Mesh, error) {
	var m Mesh
	for field := range strings.SplitSeq(text, ",") {
		name, shape, ok := strings.Cut(field, ":")
		if !ok || name == "" {
			return Mesh{}, fmt.Errorf("%.60q is no axis of a mesh: want NAME:SLICES, as batch:2, "+
				"or NAME:PROCESSESxSLICES", field)
		}
		cluster, device := "1", shape
		if before, after, both := strings.Cut(shape, "x"); both {
			cluster, device = before, after
		}
		c, d := 0, 0
		for _, part := range []struct {
			to   *int
			text string
		}{{&c, cluster}, {&d, device}} {
			var err error
			if *part.to, err = strconv.Atoi(part.text); err != nil {
				return Mesh{}, fmt.Errorf("axis %.60q of the mesh: %.60q is no number", name,
					part.text)
			}
		}
		m.Axes, m.Cluster, m.Device = append(m.Axes, name), append(m.Cluster, c),
			append(m.Device, d)
	}
	if err := m.Check(); err != nil {
		return Mesh{}, err
	}
	return m, nil
}

// Check reports a mesh that cannot be: too many axes, names that cannot be written down,
// a name twice, and sizes out of range.
func (m Mesh) Check() error {
	if n := len(m.Axes); n == 0 || n > maxAxes || len(m.Cluster) != n || len(m.Device) != n {
		return fmt.Errorf("a mesh has 1 to %d axes, each with processes and slices; this has %d",
			maxAxes, n)
	}
	for i, name := range m.Axes {
		switch {
		case name == "" || len(name) > maxName || strings.ContainsFunc(name, unfit):
			return fmt.Errorf("%.60q is no name of an axis of a mesh", name)
		case slices.Contains(m.Axes[:i], name):
			return fmt.Errorf("the mesh has axis %s twice", name)
		case m.Cluster[i] < 1 || m.Device[i] < 1 || m.Cluster[i] > maxSize ||
			m.Device[i] > maxSize:
			return fmt.Errorf("axis %s of the mesh: %dx%d is out of range: want 1 to %d", name,
				m.Cluster[i], m.Device[i], maxSize)
		}
	}
	const most = 1 << 12
	total := 1
	for i := range m.Axes {
		if total *= m.Size(i); total > most {
			return fmt.Errorf("mesh %s has more than %d coordinates", m, most)
		}
	}
	return nil
}

// unfit reports a character that no name of an axis of a mesh has: it would be read as
// something else, or could not be printed.
func unfit(r rune) bool {
	return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == unicode.ReplacementChar ||
		strings.ContainsRune(",:=*#", r)
}

// Assign says that axes of a name are divided along an axis of the mesh. The name is that
// of an axis of inputs and variables, "batch"; or an axis of leaves by their names,
// "*/ff/w0:1", in which * stands for any text.
type Assign struct{ Name, Axis string }

// String is the assignment for an error, quoted if it is odd, and cut if it is long.
func (a Assign) String() string {
	text := a.Name + "=" + a.Axis
	if quoted := fmt.Sprintf("%.60q", text); quoted != `"`+text+`"` {
		return quoted
	}
	return text
}

// Layout lists what is divided along which axis of a mesh. What comes earlier wins where
// both cannot be.
type Layout []Assign

// String is what [ParseLayout] reads.
func (l Layout) String() string {
	var list []string
	for _, a := range l {
		list = append(list, a.Name+"="+a.Axis)
	}
	return strings.Join(list, ",")
}

// ParseLayout reads assignments with commas between them: "experts=experts,batch=batch".
// Of no text it is every axis of the mesh for the axes of its own name.
func ParseLayout(text string, m Mesh) (Layout, error) {
	if text == "" {
		return m.Named(), nil
	}
	var l Layout
	for field := range strings.SplitSeq(text, ",") {
		at := strings.LastIndexByte(field, '=')
		if at < 1 || at == len(field)-1 {
			return nil, fmt.Errorf("%.60q is no assignment of a layout: want AXIS=AXIS OF THE "+
				"MESH, as batch=batch", field)
		}
		l = append(l, Assign{field[:at], field[at+1:]})
	}
	if err := l.Check(m); err != nil {
		return nil, err
	}
	return l, nil
}

// Named is the layout that gives every axis of the mesh the axes of its own name.
func (m Mesh) Named() Layout {
	var l Layout
	for _, name := range m.Axes {
		l = append(l, Assign{name, name})
	}
	return l
}

// Check reports a layout that is not of the mesh: axes that it does not have, axes of it
// that nothing is divided along, an assignment twice, and patterns without an axis.
func (l Layout) Check(m Mesh) error {
	used := make([]bool, len(m.Axes))
	for i, a := range l {
		at := m.Axis(a.Axis)
		if at < 0 {
			return fmt.Errorf("layout %s: the mesh has no axis %.60q: it has %s", a, a.Axis,
				strings.Join(m.Axes, ", "))
		}
		used[at] = true
		if strings.ContainsFunc(a.Name, func(r rune) bool {
			return !unicode.IsPrint(r) || r == unicode.ReplacementChar
		}) {
			return fmt.Errorf("layout %s: %.60q cannot be printed", a, a.Name)
		}
		if slices.Contains(l[:i], a) {
			return fmt.Errorf("layout %s is there twice", a)
		}
		if !a.byName() {
			if _, _, err := a.pattern(); err != nil {
				return err
			}
		}
	}
	if i := slices.Index(used, false); i >= 0 {
		return fmt.Errorf("nothing is divided along axis %s of the mesh: the layout is %.120q",
			m.Axes[i], l)
	}
	return nil
}

// pattern is the names that an assignment is for, and which of their axes.
func (a Assign) pattern() (names string, axis int, err error) {
	names, number, _ := strings.Cut(a.Name, ":")
	if axis, err = strconv.Atoi(number); err != nil || axis < 0 || names == "" {
		return "", 0, fmt.Errorf("layout %s: want an axis by number after the names, as in */w0:1",
			a)
	}
	return names, axis, nil
}

// byName reports whether an assignment is for axes of a name, not for names of leaves.
func (a Assign) byName() bool { return !strings.ContainsAny(a.Name, "*/:") }

// match reports whether a name is of a pattern, in which * is any text. What is between two
// of them is looked for where it comes first, so that many of them take no longer than few.
func match(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, parts[0])
	for _, part := range parts[1:last] {
		_, after, found := strings.Cut(name, part)
		name, ok = after, ok && found
	}
	return ok && strings.HasSuffix(name, parts[last])
}

// Spec is a mesh and what is divided along it.
type Spec struct {
	Mesh   Mesh
	Layout Layout
	// Peers says that processes have devices that reach each other's memory. What they exchange
	// before updates goes from device to device then, but for sums of more than two, and where data
	// says which rows do.
	Peers bool
}

// Error is a mesh or a layout that does not go with a graph, as where it divides no axis
// that the graph has, or a size into unequal parts.
type Error struct {
	Spec Spec
	Err  error
}

// Error is one line.
func (e *Error) Error() string { return fmt.Sprintf("mesh %s: %v", e.Spec, e.Err) }

// Unwrap is the error without the mesh.
func (e *Error) Unwrap() error { return e.Err }

// Parse reads a mesh and a layout: see [ParseMesh] and [ParseLayout].
func Parse(mesh, layout string) (*Spec, error) {
	m, err := ParseMesh(mesh)
	if err != nil {
		return nil, err
	}
	l, err := ParseLayout(layout, m)
	if err != nil {
		return nil, err
	}
	return &Spec{Mesh: m, Layout: l}, nil
}

// Check reports a mesh or a layout that cannot be.
func (s Spec) Check() error {
	if err := s.Mesh.Check(); err != nil {
		return err
	}
	return s.Layout.Check(s.Mesh)
}

// String is the mesh and, if it says more, the layout.
func (s Spec) String() string {
	if slices.Equal(s.Layout, s.Mesh.Named()) {
		return s.Mesh.String()
	}
	return s.Mesh.String() + " " + s.Layout.String()
}

// divisors are the sizes from 2 on that divide n, as a list: "2, 3 and 6".
func divisors(n int) string {
	var list []string
	for d := 2; d <= n && len(list) < 12; d++ {
		if n%d == 0 {
			list = append(list, strconv.Itoa(d))
		}
	}
	switch k := len(list); {
	case k == 0:
		return "nothing does"
	case k == 1:
		return list[0] + " does"
	default:
		return strings.Join(list[:k-1], ", ") + " and " + list[k-1] + " do"
	}
}
