package onnx

// recurrent are operators of recurrent.
var recurrent = each(map[string]func(n *node){})
