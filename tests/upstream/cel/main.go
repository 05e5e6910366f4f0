// Says what Kubernetes' own CEL makes of expressions: one expression a line in, as a JSON string, one answer a line out.
// The answer has the type or the compiler's report, the estimated cost, and the value with its cost or the error.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

type answer struct {
	Issues   string   `json:"issues,omitempty"`
	Type     string   `json:"type,omitempty"`
	Estimate []string `json:"estimate,omitempty"`
	Value    any      `json:"value,omitempty"`
	Error    string   `json:"error,omitempty"`
	Cost     *uint64  `json:"cost,omitempty"`
}

// shown gives a value with its type, so that 1, 1u and 1.0 differ.
func shown(value ref.Val) any {
	switch each := value.(type) {
	case types.Bool:
		return []any{"bool", bool(each)}
	case types.Int:
		return []any{"int", strconv.FormatInt(int64(each), 10)}
	case types.Uint:
		return []any{"uint", strconv.FormatUint(uint64(each), 10)}
	case types.Double:
		if math.IsNaN(float64(each)) {
			return []any{"double", "NaN"}
		}
		return []any{"double", strconv.FormatUint(math.Float64bits(float64(each)), 16)}
	case types.String:
		return []any{"string", string(each)}
	case types.Bytes:
		return []any{"bytes", hex.EncodeToString([]byte(each))}
	case types.Null:
		return []any{"null"}
	case types.Timestamp:
		return []any{"timestamp", each.Time.UTC().Format(time.RFC3339Nano)}
	case types.Duration:
		return []any{"duration", strconv.FormatInt(int64(each.Duration), 10)}
	case *types.Optional:
		if !each.HasValue() {
			return []any{"optional"}
		}
		return []any{"optional", shown(each.GetValue())}
	case *types.Type:
		return []any{"type", each.TypeName()}
	case traits.Mapper:
		found := [][]any{}
		for it := each.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			found = append(found, []any{shown(key), shown(each.Get(key))})
		}
		sort.Slice(found, func(one, other int) bool { return fmt.Sprint(found[one]) < fmt.Sprint(found[other]) })
		return []any{"map", found}
	case traits.Lister:
		found := []any{}
		for it := each.Iterator(); it.HasNext() == types.True; {
			found = append(found, shown(it.Next()))
		}
		return []any{"list", found}
	}
	return []any{"other", value.Type().TypeName()}
}

// sizes has ten elements at most in whatever is asked for.
type sizes struct{}

func (sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	if len(element.Path()) == 0 {
		return nil
	}
	return &checker.SizeEstimate{Min: 0, Max: 10}
}

func (sizes) EstimateCallCost(function, overload string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	return nil
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func environ() *cel.Env {
	item := apiservercel.NewObjectType("item", map[string]*apiservercel.DeclField{
		"name":  apiservercel.NewDeclField("name", apiservercel.StringType, true, nil, nil),
		"count": apiservercel.NewDeclField("count", apiservercel.IntType, false, nil, nil),
	})
	self := apiservercel.NewObjectType("thing", map[string]*apiservercel.DeclField{
		"a":     apiservercel.NewDeclField("a", apiservercel.IntType, true, nil, nil),
		"b":     apiservercel.NewDeclField("b", apiservercel.BoolType, false, nil, nil),
		"d":     apiservercel.NewDeclField("d", apiservercel.DoubleType, false, nil, nil),
		"s":     apiservercel.NewDeclField("s", apiservercel.StringType, false, nil, nil),
		"when":  apiservercel.NewDeclField("when", apiservercel.TimestampType, false, nil, nil),
		"lasts": apiservercel.NewDeclField("lasts", apiservercel.DurationType, false, nil, nil),
		"names": apiservercel.NewDeclField("names", apiservercel.NewListType(apiservercel.StringType, 10), false, nil, nil),
		"sizes": apiservercel.NewDeclField("sizes", apiservercel.NewMapType(apiservercel.StringType, apiservercel.IntType, 10), false, nil, nil),
		"items": apiservercel.NewDeclField("items", apiservercel.NewListType(item, 10), false, nil, nil),
		"none":  apiservercel.NewDeclField("none", apiservercel.StringType, false, nil, nil),
	})
	base := environment.MustBaseEnvSet(version.MajorMinor(1, 33), true)
	set := must(base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable("self", self.CelType()),
			cel.Variable("object", cel.DynType),
		},
		DeclTypes: []*apiservercel.DeclType{self},
	}))
	return must(set.Env(environment.NewExpressions))
}

func variables() map[string]any {
	self := map[string]any{
		"a": int64(2), "b": true, "d": 1.5, "s": "a-b-c",
		"when":  must(time.Parse(time.RFC3339, "2024-02-29T12:34:56Z")),
		"lasts": 90 * time.Minute,
		"names": []any{"ab", "ac", "b"},
		"sizes": map[string]any{"q": int64(4)},
		"items": []any{
			map[string]any{"name": "x", "count": int64(3)},
			map[string]any{"name": "y"},
		},
	}
	object := map[string]any{
		"spec": map[string]any{
			"replicas": int64(3), "ratio": 0.5, "on": true, "title": "é1",
			"boxes": []any{
				map[string]any{"name": "a", "image": "x:1"},
				map[string]any{"name": "b", "image": "y"},
			},
			"labels": map[string]any{"k": "v", "n": int64(1)},
		},
		"none": nil,
	}
	return map[string]any{"self": self, "object": object}
}

func answered(env *cel.Env, given map[string]any, expression string) (found answer) {
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return answer{Issues: issues.String()}
	}
	found.Type = ast.OutputType().String()
	estimate, err := env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: sizes{}})
	if err != nil {
		panic(err)
	}
	found.Estimate = []string{strconv.FormatUint(estimate.Min, 10), strconv.FormatUint(estimate.Max, 10)}
	program, err := env.Program(ast)
	if err != nil {
		found.Error = "program: " + err.Error()
		return found
	}
	value, details, err := program.Eval(given)
	if err != nil {
		found.Error = err.Error()
	} else {
		found.Value = shown(value)
	}
	if details != nil {
		found.Cost = details.ActualCost()
	}
	return found
}

func main() {
	env, given := environ(), variables()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		var expression string
		if err := json.Unmarshal(lines.Bytes(), &expression); err != nil {
			panic(err)
		}
		if err := out.Encode(answered(env, given, expression)); err != nil {
			panic(err)
		}
	}
}
