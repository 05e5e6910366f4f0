from mews.kube.chassis.port import DeviceRecord, Listing
from mews.systems.pooldra.table import BelievedTable

A, B = DeviceRecord("1", "GPU-A", None), DeviceRecord("2", "GPU-B", "1")
OTHER = DeviceRecord("3", "FPGA-C", None, "FPGA")


def test_a_device_that_a_listing_lacks_is_believed_to_be_there_until_the_last_of_some():
    table = BelievedTable(3)
    table.take(Listing((A, B, OTHER)))
    for _ in range(2):
        table.take(Listing((A,)))
        assert table.lacked("2")
        assert set(table.devices) == {"1", "2"}
    table.take(Listing((A,)))
    assert set(table.devices) == {"1"}
    assert not table.lacked("2")


def test_listings_without_a_device_count_only_in_a_row():
    table = BelievedTable(2)
    for listed in ((A, B), (A,), (A, B), (A,)):
        table.take(Listing(listed))
    assert set(table.devices) == {"1", "2"}


def test_the_first_listings_may_be_partial():
    table = BelievedTable(2)
    assert not table.is_known
    table.take(Listing((A,)))
    assert (table.is_known, table.is_sure) == (True, False)
    table.take(Listing((A,)))
    assert table.is_sure
