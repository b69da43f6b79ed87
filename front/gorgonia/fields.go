package gorgonia

import (
	"fmt"
	"reflect"
	"unsafe"
)

// fields reads what an operation or a solver of Gorgonia says of itself. The first field that is
// missing stays as its error.
type fields struct {
	of  reflect.Value
	err error
}

// read begins to read x, which is a struct or points to one.
func read(x any) *fields { return &fields{of: reflect.Indirect(reflect.ValueOf(x))} }

// find is a field of one of the kinds, or zero.
func (f *fields) find(name string, kinds ...reflect.Kind) reflect.Value {
	v := f.of.FieldByName(name)
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	for _, k := range kinds {
		if v.IsValid() && v.Kind() == k {
			return v
		}
	}
	if f.err == nil {
		f.err = fmt.Errorf("%s has no field %s as Gorgonia v0.9.18 has it", f.of.Type(), name)
	}
	return reflect.Value{}
}

// whole is a field that is an integer.
func (f *fields) whole(name string) int {
	if v := f.find(name, reflect.Int, reflect.Uint8); v.IsValid() {
		if v.CanInt() {
			return int(v.Int())
		}
		return int(v.Uint())
	}
	return 0
}

// list is a field that is a slice of integers.
func (f *fields) list(name string) []int {
	v := f.find(name, reflect.Slice)
	if !v.IsValid() {
		return nil
	}
	out := make([]int, v.Len())
	for i := range out {
		out[i] = int(v.Index(i).Int())
	}
	return out
}

// number is a field that is a float64.
func (f *fields) number(name string) float64 {
	if v := f.find(name, reflect.Float64); v.IsValid() {
		return v.Float()
	}
	return 0
}

// flag is a field that is a truth value.
func (f *fields) flag(name string) bool {
	v := f.find(name, reflect.Bool)
	return v.IsValid() && v.Bool()
}

// within reads the struct that an interface in a field holds.
func (f *fields) within(name string) *fields {
	v := f.find(name, reflect.Struct)
	if !v.IsValid() {
		return &fields{of: f.of, err: f.err}
	}
	return &fields{of: v}
}

// pointer is the address in a field that is a pointer.
func (f *fields) pointer(name string) unsafe.Pointer {
	if v := f.find(name, reflect.Pointer); v.IsValid() {
		return v.UnsafePointer()
	}
	return nil
}
