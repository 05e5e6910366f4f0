"""Section 2 of the contract, rule by rule, and the tests that hold each; what pods ask for is in ``rules``, row by row.

A row names functions of this package's tests, or scenarios as ``scenario:NAME``.
"""

from __future__ import annotations

ROWS = "test_rules:test_a_request_is_what_its_row_says"
PLACED = "test_rules:test_devices_are_given_as_their_row_says"

RULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    # requests
    ("100 is one device", (ROWS, PLACED)),
    ("the allowed combinations, and no other", (ROWS,)),
    ("core alone is invalid", (ROWS, "test_plugin:test_a_request_that_no_node_can_serve_is_said_so")),
    ("rdma, fpga: at most 100 or a multiple", (ROWS,)),
    ("nvidia stays where its plugin runs", ("test_webhook:test_where_a_device_plugin_runs_nvidia_s_name_stays",)),
    ("and is dropped where it does not", ("test_admission:test_nvidia_s_name_goes_where_its_plugin_does_not_run",)),
    (
        "nvidia and exactly its translation is valid",
        (ROWS, "test_admission:test_what_was_translated_already_stays_as_it_is"),
    ),
    (
        "memory of the translation stands in the annotation only",
        (
            "test_plugin:test_a_pod_has_core_memory_and_ratio_in_its_annotation",
            "test_webhook:test_a_pod_with_devices_is_ours_as_soon_as_it_is_stored",
        ),
    ),
    ("nvidia n and gpu x are core and ratio", (ROWS, "test_seed:test_a_request_is_what_the_seed_says_of_it")),
    ("count is shared, else ratio / 100, else 1; each has value / count", (ROWS,)),
    (
        "ratio to bytes whole, bytes to ratio truncated",
        (ROWS, "test_complaints:test_kai_416_bytes_decide_and_not_their_truncated_ratio"),
    ),
    (
        "unhealthy devices offer nothing, their use stays",
        ("test_plugin:test_an_unhealthy_device_is_given_to_nobody_and_its_pod_keeps_it", "scenario:05-unhealthy"),
    ),
    # node resources
    (
        "sums over healthy GPUs of core, memory, ratio, gpu",
        ("test_reporter:test_the_node_has_what_its_healthy_gpus_have",),
    ),
    ("100 per healthy rdma and fpga", ("test_reporter:test_an_adapter_and_an_fpga_are_a_hundred_each",)),
    (
        "four of 8 GiB: 400, 32Gi, 400",
        (
            "test_seed:test_four_gpus_of_8_gib_are_its_numbers",
            "test_reporter:test_the_seed_s_node_of_four_gpus_has_its_numbers",
        ),
    ),
    (
        "32GB is refused by an API server",
        ("test_seed:test_its_numbers_of_a_node_are_refused_by_an_api_server_and_those_of_other_devices_taken",),
    ),
    (
        "patched into capacity and allocatable, again after a restart",
        ("test_reporter:test_a_kubelet_that_resets_the_node_s_status_is_corrected_at_once", "scenario:22-restarts"),
    ),
    ("labels: model, vendor, driver, product", ("test_reporter:test_labels_name_vendor_model_driver_and_product",)),
    (
        "nvidia.com/gpu is never written to the node",
        ("test_reporter:test_names_of_the_seed_are_not_published_unasked_and_nvidia_s_never",),
    ),
    # the plugin
    (
        "PreFilter: what cannot be parsed is unresolvable",
        ("test_plugin:test_a_request_that_no_node_can_serve_is_said_so",),
    ),
    (
        "Filter: per device on each node",
        (PLACED, "test_complaints:test_hami_2622_as_many_share_a_gpu_as_their_memory_says"),
    ),
    (
        "Reserve and Unreserve in a cache",
        (
            "test_complaints:test_kai_1188_of_32_gpus_32_are_given",
            "test_plugin:test_none_of_a_gang_is_bound_where_not_all_fit",
        ),
    ),
    ("PreBind writes core, memory and ratio", ("test_plugin:test_a_pod_has_core_memory_and_ratio_in_its_annotation",)),
    (
        "Init rebuilds from Node, Device, Pod",
        ("test_complaints:test_koordinator_1289_a_binding_of_the_last_leader_is_refused_or_counts",),
    ),
    ("Total, Free, Used, AllocateSet at a debug endpoint", ("test_plugin:test_the_books_can_be_read",)),
    (
        "hints and partitions decide first",
        (
            "test_known_cases:test_a_known_case_is_as_it_is_known",
            "test_every_choice:test_what_is_given_is_possible_and_the_best_there_is",
        ),
    ),
    ("deviceChoice minor", (PLACED, "test_plugin:test_two_pods_share_a_gpu_and_a_third_gets_another")),
    (
        "deviceChoice leastAllocated, the default, then minor",
        ("test_plugin:test_the_least_allocated_device_comes_first_where_nothing_else_is_said",),
    ),
    (
        "deviceChoice bandwidth, the default for several with links",
        ("test_plugin:test_a_gang_of_two_is_on_one_node_with_the_fastest_gpus_for_both", "scenario:08-links"),
    ),
    # kinds, links, gangs
    (
        "new kinds without code",
        (
            "test_plugin:test_a_kind_that_no_code_names_is_given_by_data_alone",
            "test_reporter:test_a_kind_that_is_new_needs_a_rule_and_no_code",
        ),
    ),
    (
        "the set with the best slowest, then summed pair",
        (
            "test_selection:test_the_best_set_is_the_best_of_all_sets",
            "test_selection:test_the_best_set_is_the_best_of_all_sets_on_matrices_of_chance",
        ),
    ),
    (
        "NVLink state, else PCIe level, in the Device",
        (
            "test_reporter:test_links_are_the_host_s_own_pair_by_pair",
            "test_selection:test_two_of_a_server_without_nvlinks_are_below_one_switch",
        ),
    ),
    (
        "gang: all or none, on one node",
        ("test_plugin:test_none_of_a_gang_is_bound_where_not_all_fit", "scenario:06-gang"),
    ),
    (
        "gang: jointly optimal, by brute force",
        (
            "test_gangs:test_a_gang_gets_the_best_of_all_ways",
            "test_gangs:test_a_gang_gets_the_best_of_all_ways_on_matrices_of_chance",
        ),
    ),
    # checkpoint
    (
        "held ids count until their pod ends",
        ("test_plugin:test_held_devices_are_not_given_until_their_pod_ends", "scenario:21-adopted"),
    ),
    (
        "an id that is not listed is kept, told, and counts later",
        (
            "test_plugin:test_a_held_device_that_is_not_listed_counts_when_it_is",
            "test_seed:test_its_device_is_applied_and_what_it_says_is_held_counts_once_it_is_listed",
        ),
    ),
    (
        "allocResp may be absent",
        ("test_seed:test_its_device_is_applied_and_what_it_says_is_held_counts_once_it_is_listed",),
    ),
    ("entries of ended pods go", ("test_adoption:test_the_checkpoint_stands_in_the_device_object_until_its_pod_ends",)),
    (
        "per-NUMA ids are one list",
        (
            "test_adoption:test_devices_by_numa_node_are_one_list_in_order_of_nodes",
            "test_adoption:test_a_real_kubelet_s_checkpoint_is_read",
        ),
    ),
    ("pods of our scheduler are left out", ("test_adoption:test_entries_of_live_pods_of_others_are_adopted",)),
    # reporter
    (
        "NVML to Device each period and after a hot-plug",
        ("test_reporter:test_a_gpu_that_goes_is_unhealthy_first_and_then_gone_and_minors_stay", "scenario:23-hot-plug"),
    ),
    ("topology from sysfs", ("test_reporter:test_gpus_and_adapters_below_one_switch_share_their_pcie",)),
    (
        "health by XID",
        (
            "test_reporter:test_an_xid_of_its_hardware_breaks_a_gpu_until_its_driver_is_bound_anew",
            "test_reporter:test_an_xid_that_a_program_causes_breaks_nothing",
        ),
    ),
    # hook
    (
        "PreCreateContainer over gRPC: annotations, args, env",
        (
            "test_hook:test_the_annotation_covers_the_device_plugin_s_variable_and_the_rest_stays",
            "scenario:20-koordlet",
        ),
    ),
    ("UpdateRequest likewise", ("test_hook:test_an_update_is_answered_like_a_creation",)),
    (
        "minors where index is minor, else UUIDs",
        (
            "test_adoption:test_minors_are_written_where_they_are_indexes_else_uuids",
            "test_hook:test_after_a_hot_plug_numbers_that_are_no_indexes_are_uuids",
        ),
    ),
    (
        "pods without annotation are adopted from env",
        (
            "test_adoption:test_a_pod_without_annotation_is_adopted_from_its_environment",
            "test_adoption:test_a_variable_is_read_as_the_container_runtime_reads_it",
        ),
    ),
    (
        "what is found stands in the Device",
        ("test_adoption:test_what_an_update_shows_is_adopted_and_stands_though_koordlet_and_runtime_start_anew",),
    ),
    # upgrade, webhook
    ("the seven steps with live pods", ("scenario:28-upgrade",)),
    (
        "step 3 left out: invariant 3",
        ("test_upgrade:test_without_step_3_the_old_scheduler_gives_what_the_new_one_has_given",),
    ),
    (
        "step 4 left out: invariant 3",
        ("test_upgrade:test_without_step_4_the_new_scheduler_gives_what_the_old_one_has_given",),
    ),
    ("the webhook sets schedulerName", ("test_webhook:test_a_pod_with_devices_is_ours_as_soon_as_it_is_stored",)),
    (
        "and refuses foreign binds",
        (
            "test_webhook:test_a_foreign_binding_is_refused_and_ours_is_not",
            "test_webhook:test_a_foreign_binding_by_the_older_path_is_refused_as_well",
        ),
    ),
    (
        "a GPU pod is any resource of section 1",
        (
            "test_admission:test_a_pod_with_devices_is_bound_by_our_scheduler_alone",
            "test_options:test_the_webhook_knows_a_new_kind_of_device_by_its_name_alone",
        ),
    ),
    ("partition: the highest allocationScore", ("test_known_cases:test_a_known_case_is_as_it_is_known",)),
    # manifests of the seed
    ("requests alone are 422", ("test_seed:test_requests_without_limits_are_refused_by_an_api_server",)),
    (
        "kubernetes.io/gpu-core is admitted and Insufficient",
        ("test_seed:test_a_request_by_the_seed_s_names_is_admitted_and_its_node_lists_none_of_it",),
    ),
    (
        "the webhook renames six names, limits are requests",
        (
            "test_admission:test_a_request_of_the_design_becomes_today_s_with_limits_that_equal_it",
            "scenario:25-webhook",
        ),
    ),
    ("names: seed publishes the seed's names", ("test_reporter:test_the_seed_s_node_of_four_gpus_has_its_numbers",)),
    # in use, isolation, with or without a plugin
    (
        "whoever asks what is in use asks the system",
        (
            "test_contest:test_the_invariants_of_every_run_know_what_a_pod_has",
            "test_holdings:test_other_types_are_held_beside_what_the_kubelet_gave",
        ),
    ),
    (
        "the hook overrides the plugin's env",
        ("test_hook:test_the_annotation_covers_the_device_plugin_s_variable_and_the_rest_stays",),
    ),
    (
        "HAMi-core: limits in bytes and hundredths",
        (
            "test_hook:test_hami_core_is_told_its_share_in_bytes_and_hundredths",
            "test_hook:test_no_limit_without_the_label_or_of_a_whole_gpu",
        ),
    ),
    (
        "with or without a device plugin",
        (
            "test_scenarios:test_a_scenario_passes_with_a_device_plugin_beside_it",
            "test_scenarios:test_all_but_those_about_a_plugin_s_own_pods_run_without_one_as_they_are",
        ),
    ),
    (
        "after step 7 the old scheduler's GPU pods are refused",
        ("test_upgrade:test_without_step_2_the_webhook_leaves_such_a_pod_unbound_or_to_the_new_scheduler",),
    ),
    (
        "webhook off: adopted, never double",
        ("test_upgrade:test_without_step_5_pods_wait_for_the_old_scheduler_and_what_it_gives_is_adopted",),
    ),
)
