// The works of `works.py` in ns-3: work echo | work bulk RATE SECONDS QUEUE_PACKETS | work flows COUNT SECONDS |
// work line NODES | work chain ROUTERS COUNT. TCP is Cubic with the segments, buffers and delayed
// acknowledgements of Linux.
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

static uint64_t received_bytes;

static void Received(Ptr<const Packet> packet, const Address&) { received_bytes += packet->GetSize(); }

class Net {
  public:
    explicit Net(int count) {
        nodes.Create(count);
        InternetStackHelper().Install(nodes);
        addresses.SetBase("10.0.0.0", "255.255.255.252");
    }

    // Connects two nodes; the address of the second.
    Ipv4Address Link(int a, int b, std::string rate, std::string delay, std::string packets = "1000") {
        PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", StringValue(rate));
        link.SetChannelAttribute("Delay", StringValue(delay));
        link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(packets + "p"));
        auto ends = addresses.Assign(link.Install(nodes.Get(a), nodes.Get(b)));
        addresses.NewNetwork();
        return ends.GetAddress(1);
    }

    void Echo(int from, Ipv4Address to, int count) {
        UdpEchoClientHelper client(to, 9);
        client.SetAttribute("MaxPackets", UintegerValue(count));
        client.SetAttribute("Interval", TimeValue(Seconds(1)));
        client.SetAttribute("PacketSize", UintegerValue(56));
        client.Install(nodes.Get(from)).Start(Seconds(1));
    }

    void Tcp(int from, int to, Ipv4Address address, double seconds, uint64_t bytes = 0) {
        BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(address, 5201));
        sender.SetAttribute("MaxBytes", UintegerValue(bytes));
        sender.SetAttribute("SendSize", UintegerValue(1 << 17));
        auto sending = sender.Install(nodes.Get(from));
        sending.Start(Seconds(1));
        sending.Stop(Seconds(1 + seconds));
        Sink(to, "ns3::TcpSocketFactory", 5201);
    }

    void Sink(int at, std::string sockets, int port) {
        PacketSinkHelper sink(sockets, InetSocketAddress(Ipv4Address::GetAny(), port));
        sink.Install(nodes.Get(at)).Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Received));
    }

    NodeContainer nodes;

  private:
    Ipv4AddressHelper addresses;
};

int main(int argc, char** argv) {
    std::string work = argv[1];
    auto number = [&](int place) { return std::stoi(argv[place]); };
    double stop_s = 0;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::TcpCubic")));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 26));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 26));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    if (work == "echo") {
        Net net(2);
        auto address = net.Link(0, 1, "1Gbps", "10ms");
        UdpEchoServerHelper(9).Install(net.nodes.Get(1));
        net.Echo(0, address, 3600);
        stop_s = 3602;
    } else if (work == "bulk") {
        Net net(2);
        net.Tcp(0, 1, net.Link(0, 1, argv[2], "10ms", argv[4]), number(3));
        stop_s = number(3) + 2;
    } else if (work == "flows") {
        int count = number(2), left = 2 * count, right = left + 1;
        Net net(2 * count + 2);
        net.Link(left, right, "100Mbps", "10ms");
        for (int i = 0; i < count; i++) {
            net.Link(i, left, "1Gbps", "1ms");
            net.Tcp(i, count + i, net.Link(right, count + i, "1Gbps", "1ms"), number(3));
        }
        Ipv4GlobalRoutingHelper::PopulateRoutingTables();
        stop_s = number(3) + 2;
    } else if (work == "line") {
        int count = number(2);
        Net net(count);
        Ipv4Address next;
        UdpEchoServerHelper(9).Install(net.nodes);
        for (int i = 0; i + 1 < count; i++) {
            next = net.Link(i, i + 1, "100Mbps", "1ms");
            net.Echo(i, next, 60);
        }
        stop_s = 63;
    } else if (work == "chain") {
        int count = number(2) + 2;
        Net net(count);
        Ipv4Address last;
        for (int i = 0; i + 1 < count; i++) last = net.Link(i, i + 1, "100Mbps", "1ms");
        UdpClientHelper client(last, 9);
        client.SetAttribute("MaxPackets", UintegerValue(number(3)));
        client.SetAttribute("Interval", TimeValue(MicroSeconds(125)));
        client.SetAttribute("PacketSize", UintegerValue(1472));
        client.Install(net.nodes.Get(0)).Start(Seconds(1));
        net.Sink(count - 1, "ns3::UdpSocketFactory", 9);
        Ipv4GlobalRoutingHelper::PopulateRoutingTables();
        stop_s = 1.1 + number(3) * 125e-6;
    } else {
        return 2;
    }
    Simulator::Stop(Seconds(stop_s));
    Simulator::Run();
    std::cout << "received " << received_bytes << " bytes" << std::endl;
    Simulator::Destroy();
}
